"""The taint of the fault's node is still there when the recording ends, a minute before its time was up."""

from __future__ import annotations

from cases import Case
from drains import drained_at_200


def case() -> Case:
    story = drained_at_200()
    story.pod("llm-c", "on-demand-1", 202.5, running_s=205, ready_s=230)
    story.node("other", 590)
    says = ("Node spot-1 has the taint karpenter.sh/disrupted when the recording ended", "before its time was up")
    return Case(story.build(), says, ("objects:8",), {"steady_s_max": 400}, 1, {"left_over": 0})
