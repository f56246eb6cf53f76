"""One planned request has no row."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story(info={"planned": 2})
    story.request(1, "llm-a")
    return Case(story.build(), ("2 were planned, but 1 have a row",))
