"""The hypothesis was met."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.mark(-1, "steady_state_before", "met")
    return Case(story.build(), ("was met before",), ("marks:0",), exercised=1)
