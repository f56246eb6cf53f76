"""Nobody asked for a device by claim."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    return Case(story.build(), ("no claim was given a device",), exercised=0)
