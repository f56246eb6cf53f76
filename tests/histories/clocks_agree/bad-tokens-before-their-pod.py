"""The clock of the load is behind: tokens came from a pod that the recorder saw only later."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.pod("llm-late", "on-demand-1", at_s=300)
    story.request(100, "llm-late")
    return Case(story.build(), ("the load generator", "behind"))
