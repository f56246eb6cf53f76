"""The workload is deleted half a minute after it was raised: nobody can say whether it would have come back in time."""

from __future__ import annotations

from cases import Case
from scaled import one_replica


def case() -> Case:
    story = one_replica()
    story.scale(100, 3)
    story.remove(130, "Deployment", "llm")
    story.remove(130, "ReplicaSet", "llm-1")
    story.node("other", 590)
    says = ("llm was still above its floor of 1, but llm was deleted before its time was up",)
    return Case(story.build(), says, (), {"floor_s_max": 400.0}, 0, {"late": 0})
