"""Losses that nobody asked for are told apart: the budget has no say in them."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("spot-1")
    story.node("on-demand-1")
    story.budget(2, 1)
    story.pod("llm-a", "spot-1")
    story.pod("llm-b", "on-demand-1")
    story.pod("llm-c", "on-demand-1")
    story.pod("llm-d", "on-demand-1")
    story.evict(100, "llm-d")
    story.end(110, "llm-d")
    story.node_gone("spot-1", 200)
    story.evict(205, "llm-a", "DeletionByTaintManager")
    story.end(206, "llm-a")
    story.remove(300, "Pod", "llm-b")
    return Case(story.build(), ("1 voluntary disruption under",), (), {}, 1, {"voluntary": 1, "involuntary": 1})
