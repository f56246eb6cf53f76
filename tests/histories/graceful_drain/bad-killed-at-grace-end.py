"""The stream outlived the grace, and SIGKILL cut it."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import Outcome


def case() -> Case:
    story = Story()
    story.node("spot-1")
    story.pod("llm-a", "spot-1", grace_s=60)
    story.request(315, "llm-a", Outcome.RESET_MID_STREAM, lasts_s=65.2)
    story.evict(320, "llm-a")
    story.end(380.5, "llm-a", 137)
    return Case(
        story.build(), ("1 killed at the end of its grace (request 0; llm-a on spot-1)",), ("requests:0",), {}, 1
    )
