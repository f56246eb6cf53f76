"""The emulated cluster died: its streams fell with it, while one pod was going."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import Outcome


def case() -> Case:
    story = Story(ended="child_died", length_s=335)
    story.node("spot-1")
    story.pod("llm-a", "spot-1")
    story.pod("llm-b", "spot-1")
    story.evict(322, "llm-a")
    story.request(320, "llm-a", Outcome.RESET_MID_STREAM, lasts_s=14)
    story.request(320, "llm-b", Outcome.RESET_MID_STREAM, lasts_s=14)
    return Case(story.build(), (), numbers={"streams_lost": 0, "set_aside_at_run_end": 2})
