"""The node was spared, but its taint stays."""

from __future__ import annotations

from cases import Case
from drains import drained_at_200


def case() -> Case:
    story = drained_at_200()
    story.pod("llm-c", "on-demand-1", 202.5, running_s=205, ready_s=230)
    story.node("other", 590)
    says = ("1 thing left over: Node spot-1 has the taint karpenter.sh/disrupted",)
    return Case(story.build(), says, ("objects:8",), {}, 1, {"left_over": 1})
