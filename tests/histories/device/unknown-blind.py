"""Pods were not seen for a while."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1", gpus=2)
    story.pod("llm-a", "on-demand-1")

    story.pod("llm-b", "on-demand-1", 100, bound_s=101, running_s=105, ready_s=120)
    story.gap(200, 220, "Pod")
    says = ("blind for Pod",)
    return Case(story.build(), says, (), {}, 1, {})
