"""Nobody answers for CPU for two minutes, and replicas are taken away meanwhile."""

from __future__ import annotations

from cases import Case
from processor_use import unread


def case() -> Case:
    story = unread(scaled_to=1)
    says = ("scaled down blind 1 time (first: llm from 3 to 1", "FailedGetResourceMetric")
    return Case(story.build(), says, (), {"seen_s_max": 400, "hole_s_max": 400}, None, {"scaled_down_blind": 1})
