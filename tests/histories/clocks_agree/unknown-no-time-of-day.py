"""A recording of old, in which the recorder did not note its time of day."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story(known=False)
    story.node("on-demand-1", at_s=100)
    return Case(story.build(), ("was not noted",), exercised=0)
