"""Streams of two pods fell in one moment, and both pods went on."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import Outcome


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.pod("llm-a", "on-demand-1")
    story.pod("llm-b", "on-demand-1")
    story.request(300, "llm-a", Outcome.RESET_MID_STREAM, lasts_s=20)
    story.request(305, "llm-b", Outcome.RESET_MID_STREAM, lasts_s=15)
    return Case(story.build(), ("2 cut by the gateway",), ("requests:0", "requests:1"), {}, 0)
