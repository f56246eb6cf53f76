"""The watchdog saw nothing."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.mark(0, "load_start")
    return Case(story.build(), ("0.00 s",), exercised=1)
