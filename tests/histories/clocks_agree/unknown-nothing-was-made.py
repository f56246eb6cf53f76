"""All objects were there before, so the server stamped nothing."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    return Case(story.build(), ("no object was made",))
