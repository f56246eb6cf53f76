"""The machine stood still for two seconds."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.stall(100, 2.0)
    return Case(story.build(), ("stood still 1 time", "2.00 s"), ("samples:machine/stall_s",))
