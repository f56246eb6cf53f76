"""A request was sent to a pod whose endpoint was terminating, and died with it."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import Outcome


def case() -> Case:
    story = Story()
    story.node("spot-1")
    story.pod("llm-a", "spot-1")
    story.evict(320, "llm-a")
    story.request(326, "llm-a", Outcome.RESET_MID_STREAM, lasts_s=6)
    story.end(332, "llm-a", 143)
    numbers = {"routed_to_terminating": 1, "streams_lost": 1}
    return Case(story.build(), ("1 aborted on SIGTERM",), ("requests:0", "requests:0"), numbers=numbers)
