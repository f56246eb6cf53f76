"""Streams in flight at the notice and at the evictions all ended whole."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("spot-1")
    story.pod("llm-a", "spot-1")
    story.pod("llm-b", "spot-1")
    story.taint("spot-1", 320)
    story.request(310, "llm-a", lasts_s=30)
    story.request(315, "llm-b", lasts_s=40)
    story.request(200, "llm-b", lasts_s=10)
    story.evict(322, "llm-a")
    story.evict(323, "llm-b")
    story.end(350, "llm-a")
    story.end(360, "llm-b")
    numbers = {"streams_at_risk": 2, "streams_whole": 2, "streams_lost": 0, "pods_left": 2}
    return Case(story.build(), ("2 streams in flight on 2 pods of spot-1", "all ended whole"), (), {}, 2, numbers)
