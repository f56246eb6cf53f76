"""The autoscaler says that it cannot read KEDA's source, reads what was before the crowd, and takes replicas away."""

from __future__ import annotations

from cases import Case
from kedas import crowd, says


def case() -> Case:
    story = crowd(until_s=300)
    story.scale(20, 3)
    says(story, 30, "500m")
    says(story, 80, None)
    says(story, 250, "500m")
    story.scale(250.1, 1)
    sentence = ("scaled down by a reading of the past 1 time (first: llm from 3 to 1, when too many for 1 had waited",)
    limits = {"seen_s_max": 400, "hole_s_max": 400}
    return Case(story.build(), sentence, (), limits, None, {"scaled_down_by_the_past": 1, "scaled_down_blind": 0})
