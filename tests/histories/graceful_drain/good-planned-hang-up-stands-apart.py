"""A client that hung up by plan lost nothing, though its pod was going."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import Outcome


def case() -> Case:
    story = Story()
    story.node("spot-1")
    story.pod("llm-a", "spot-1")
    story.request(310, "llm-a", lasts_s=30)
    story.request(311, "llm-a", Outcome.ABORTED_BY_CLIENT, lasts_s=20, reason="planned hang-up")
    story.evict(320, "llm-a")
    story.end(345, "llm-a")
    numbers = {"streams_at_risk": 1, "streams_lost": 0, "hung_up_by_plan": 1}
    return Case(story.build(), ("all ended whole", "1 hung up by plan stand apart"), (), {}, 1, numbers)
