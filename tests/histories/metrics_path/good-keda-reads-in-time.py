"""KEDA hands the autoscaler what waits within twenty seconds; its source is gone later, and nothing is taken away."""

from __future__ import annotations

from cases import Case
from kedas import crowd, says


def case() -> Case:
    story = crowd()
    says(story, 10, "0")
    says(story, 120, "9")
    says(story, 170, "0")
    says(story, 300, None)
    says(story, 355, "0")
    sentence = ("1 time that requests waited, read within", "no hole")
    return Case(story.build(), sentence, ("objects:6",), {}, 1, {"holes": 0})
