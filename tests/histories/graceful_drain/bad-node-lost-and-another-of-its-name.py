"""The instance went while its pod still served; another registered under its name, and its pod served whole."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import Outcome


def case() -> Case:
    story = Story()
    story.node("spot-1")
    story.pod("llm-a", "spot-1")
    story.request(315, "llm-a", Outcome.RESET_MID_STREAM, lasts_s=25)
    story.node_gone("spot-1", 341)
    story.node("spot-1", 400, usable_s=410)
    says = ("1 node lost (request 0; llm-a on spot-1)",)
    return Case(story.build(), says, ("requests:0",), {}, 0, {"streams_lost": 1})
