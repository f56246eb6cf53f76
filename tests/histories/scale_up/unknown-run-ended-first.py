"""The load ended before the replica's time was up."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story(length_s=200)
    story.node("on-demand-1")
    story.deployment(1)
    story.pod("llm-a", "on-demand-1")
    story.mark(80, "load_step")
    story.scale(100, 2)
    story.pod("llm-b", "on-demand-1", 101, running_s=105)
    return Case(story.build(), ("model to warm up", "recording ends before"), (), {"ready_s_max": 300}, 1)
