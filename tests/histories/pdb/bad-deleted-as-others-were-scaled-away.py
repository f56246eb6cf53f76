"""A drain deletes two pods past their budget in the very second in which one other is scaled away."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.node("on-demand-2")
    story.deployment(4)
    story.budget(3, 1)
    for name in "ab":
        story.pod(f"llm-{name}", "on-demand-1")
    for name in "cd":
        story.pod(f"llm-{name}", "on-demand-2")
    story.taint("on-demand-1", 300)
    story.scale(400, 3)
    story.evict(400.1, "llm-d", None)
    story.evict(400.2, "llm-a", None)
    story.evict(400.3, "llm-b", None)
    numbers = {"voluntary": 2, "deleted_past_eviction": 2, "overdrawn": 2}
    return Case(story.build(), ("deleted past the Eviction API",), (), {}, 2, numbers)
