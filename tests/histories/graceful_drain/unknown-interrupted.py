"""Ctrl-C: the load ended its own streams, which proves nothing about the system."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import Outcome


def case() -> Case:
    story = Story(ended="interrupted", length_s=330)
    story.node("spot-1")
    story.pod("llm-a", "spot-1")
    story.request(315, "llm-a", Outcome.UNFINISHED, lasts_s=15)
    story.evict(322, "llm-a")
    return Case(story.build(), ("no stream was in flight",), numbers={"streams_lost": 0, "set_aside_at_run_end": 1})
