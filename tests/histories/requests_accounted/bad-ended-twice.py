"""A request has two rows, and one ended twice."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story(info={"planned": 1, "duplicate_ends": 1})
    story.request(1, "llm-a")
    story.request(1, "llm-a", request_id=0)
    return Case(story.build(), ("more than one row", "1 end recorded"), ("requests:0",))
