"""A pod of a LeaderWorkerSet went and came again under its name: as many are ready as there were."""

from __future__ import annotations

from cases import Case
from drains import two_of_a_set


def case() -> Case:
    story = two_of_a_set()
    story.evict(200, "llm-0")
    story.end(210, "llm-0")
    story.pod("llm-0", "on-demand-1", 211, running_s=215, ready_s=250)
    story.node("other", 590)
    return Case(story.build(), ("steady 20.0 s", "nothing left over"), ("faults:3",), {}, 1, {"steady_s": 20.0})
