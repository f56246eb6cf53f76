"""A cut stream is its own proof, whatever the recorder missed."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import Outcome


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.pod("llm-a", "on-demand-1")
    story.request(300, "llm-a", Outcome.RESET_MID_STREAM, lasts_s=20)
    story.gap(290, 350, "Pod")
    return Case(story.build(), ("1 stream lost",), ("requests:0",), numbers={"streams_lost": 1})
