"""A line of the load's records was damaged: a request was sent, and how it ended is not known."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import Outcome


def case() -> Case:
    story = Story()
    story.request(10, "llm-a")
    story.request(12, None, Outcome.UNFINISHED, end_ns=None)
    return Case(story.build(), ("1 sent request without a recorded end",), ("requests:1",), {}, 2)
