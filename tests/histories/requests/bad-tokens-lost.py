"""The server gave the whole answer; five tokens of it and its end did not come."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import Outcome


def case() -> Case:
    story = Story()
    story.pod("llm-a", "on-demand-1")
    story.pod("llm-b", "on-demand-1")

    story.served(story.request(10, "llm-a", Outcome.RESET_MID_STREAM, chunks=15), "llm-a")
    says = ("5 tokens lost", "llm-a sent 20 parts of a whole answer, 15 came")
    return Case(story.build(), says, ("requests:0",), {}, 1, {"tokens_lost": 5})
