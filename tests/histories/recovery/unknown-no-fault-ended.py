"""Nothing was broken, so nothing had to recover."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.deployment(1)
    story.pod("llm-a", "on-demand-1")
    says = ("nothing to recover from",)
    return Case(story.build(), says, (), {}, 0, {})
