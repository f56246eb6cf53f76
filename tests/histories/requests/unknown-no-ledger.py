"""Real servers keep no such book."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.pod("llm-a", "on-demand-1")
    story.pod("llm-b", "on-demand-1")

    story.request(10, "llm-a")
    says = ("there is no second book",)
    return Case(story.build(), says, (), {}, 0, {})
