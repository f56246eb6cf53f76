"""The replacement is ready forty seconds after the node was gone."""

from __future__ import annotations

from cases import Case
from drains import drained_at_200


def case() -> Case:
    story = drained_at_200()
    story.pod("llm-c", "on-demand-1", 202.5, running_s=205, ready_s=300)
    story.node_gone("spot-1", 260)
    story.node("other", 590)
    says = ("steady 40.0 s", "nothing left over")
    return Case(story.build(), says, ("faults:3",), {}, 1, {"steady_s": 40.0, "left_over": 0})
