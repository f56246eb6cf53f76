"""Pods were not seen for a while after the fault."""

from __future__ import annotations

from cases import Case
from drains import drained_at_200


def case() -> Case:
    story = drained_at_200()
    story.pod("llm-c", "on-demand-1", 202.5, running_s=205, ready_s=300)
    story.node_gone("spot-1", 260)
    story.gap(320, 340, "Pod")
    says = ("blind for Pod",)
    return Case(story.build(), says, (), {}, 1, {})
