"""The burst is over for eight minutes, and all replicas are still there."""

from __future__ import annotations

from cases import Case
from scaled import one_replica


def case() -> Case:
    story = one_replica()
    story.scale(100, 3)
    story.hpa_says(300, "0", "ValidMetricFound")
    story.node("other", 590)
    says = ("still above its floor of 1, 500.0 s", "limit 400 s")
    return Case(story.build(), says, ("objects:6",), {"floor_s_max": 400.0}, 1, {"returned": 0})
