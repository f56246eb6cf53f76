"""The load's record of one end was damaged: the stream counts as lost for now, and proves nothing."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import Outcome


def case() -> Case:
    story = Story()
    story.node("spot-1")
    story.pod("llm-a", "spot-1")
    story.request(318, "llm-a", lasts_s=8)
    story.request(319, None, Outcome.UNFINISHED, end_ns=None)
    story.evict(320, "llm-a")
    story.end(335, "llm-a")
    says = ("the ends of 1 were lost from the records", "1 request lost: 1 without a recorded end (allowed 0")
    return Case(story.build(), says, ("requests:1",), {}, 1, {"streams_lost": 1})
