"""503 with no replica behind it cuts no stream."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import Outcome


def case() -> Case:
    story = Story()
    story.node("spot-1")
    story.pod("llm-a", "spot-1")
    story.request(310, "llm-a", lasts_s=30)
    story.evict(320, "llm-a")
    story.request(322, None, Outcome.HTTP_5XX, status=503, reason="no ready endpoint")
    story._requests[-1]["status"] = 503
    story.end(345, "llm-a")
    return Case(story.build(), ("all ended whole",), (), {}, 1, {"refused_without_pod": 1, "streams_lost": 0})
