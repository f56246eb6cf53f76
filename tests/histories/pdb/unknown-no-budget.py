"""There is no budget."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.pod("llm-a", "on-demand-1")
    story.evict(300, "llm-a")
    return Case(story.build(), ("no disruption budget",), (), {}, 0)
