"""All streams end whole, but a pod is gone long before its preStop hook of 10 s was over."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story(time_scale=1)
    story.node("spot-1")
    story.pod("llm-a", "spot-1")
    story.taint("spot-1", 320)
    story.request(310, "llm-a", lasts_s=14)
    story.evict(322, "llm-a")
    story.end(325, "llm-a")
    numbers = {"pre_stop_cut_short": 1, "streams_lost": 0}
    says = ("1 pod ended before the preStop hook of", "llm-a 3.0 s after it was asked to go")
    return Case(story.build(), says, (), {}, 2, numbers)
