"""One lost, one allowed."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import Outcome


def case() -> Case:
    story = Story()
    story.node("spot-1")
    story.pod("llm-a", "spot-1")
    story.request(310, "llm-a", lasts_s=30)
    story.request(311, "llm-a", Outcome.RESET_MID_STREAM, lasts_s=20)
    story.evict(320, "llm-a")
    story.end(345, "llm-a")
    return Case(story.build(), ("1 stream lost, as many as allowed",), ("requests:1",), {"streams_lost_max": 1}, 2)
