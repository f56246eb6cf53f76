"""Only others were served."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.pod("llm-a", "on-demand-1")
    story.pod("llm-b", "on-demand-1")

    story.served(99, "llm-a")
    says = ("no request stands in both books",)
    return Case(story.build(), says, (), {}, 0, {})
