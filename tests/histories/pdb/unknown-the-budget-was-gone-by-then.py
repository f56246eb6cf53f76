"""The budget was deleted before the drain, which it could not hold back any more."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.budget(2, 0)
    story.pod("llm-a", "on-demand-1")
    story.pod("llm-b", "on-demand-1")
    story.remove(150, "PodDisruptionBudget", "llm")
    story.taint("on-demand-1", 200)
    story.evict(201, "llm-a")
    story.end(210, "llm-a")
    return Case(story.build(), ("no pod under a budget was disrupted on purpose",), (), {}, 0, {"voluntary": 0})
