"""No gap."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.deployment(4)
    return Case(story.build(), ("3 object events", "without a gap"), exercised=3)
