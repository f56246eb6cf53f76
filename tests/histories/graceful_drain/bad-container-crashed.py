"""The server died of itself in the middle of a stream."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import Outcome


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.pod("llm-a", "on-demand-1")
    story.request(300, "llm-a", Outcome.RESET_MID_STREAM, lasts_s=20)
    story.crash(321, "llm-a", 139)
    return Case(story.build(), ("1 its container ended (request 0; llm-a on on-demand-1)",), ("requests:0",))
