"""All was well again before the fault's course was over."""

from __future__ import annotations

from cases import Case
from drains import drained_at_200


def case() -> Case:
    story = drained_at_200()
    story.pod("llm-c", "on-demand-1", 202.5, running_s=205, ready_s=230)
    story.node_gone("spot-1", 250)
    story.node("other", 590)
    says = ("steady 0.0 s",)
    return Case(story.build(), says, ("faults:3",), {}, 1, {"steady_s": 0.0})
