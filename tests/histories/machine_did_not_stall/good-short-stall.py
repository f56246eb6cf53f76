"""A stall below the limit."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.mark(0, "load_start")
    story.stall(100, 0.3)
    return Case(story.build(), ("0.30 s",), numbers={"stalls_over_limit": 0, "stall_s_max": 0.3})
