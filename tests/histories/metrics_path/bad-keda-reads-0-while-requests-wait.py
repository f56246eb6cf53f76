"""KEDA's query finds nothing and counts as 0: the autoscaler says that it reads 0 while requests wait for a minute."""

from __future__ import annotations

from cases import Case
from kedas import crowd, says


def case() -> Case:
    story = crowd()
    says(story, 10, "500m")
    says(story, 30, "0")
    sentence = ("s0-prometheus of keda-hpa-llm never showed 1 time that requests waited: 0 was read for",)

    return Case(story.build(), sentence, ("objects:7",), {"seen_s_max": 30}, 1, {"never_read": 1, "holes": 0})
