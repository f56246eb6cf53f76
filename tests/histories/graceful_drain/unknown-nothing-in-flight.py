"""The pods that were asked to go had no stream in flight."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("spot-1")
    story.pod("llm-a", "spot-1")
    story.request(200, "llm-a", lasts_s=10)
    story.taint("spot-1", 320)
    story.evict(322, "llm-a")
    story.end(335, "llm-a")
    return Case(story.build(), ("no stream was in flight",), (), {}, 0, {"streams_lost": 0, "pods_left": 1})
