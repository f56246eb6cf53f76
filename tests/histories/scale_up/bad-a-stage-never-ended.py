"""Its image is not there after the time that the stage has, long before the time of all stages is up."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.deployment(1)
    story.pod("llm-a", "on-demand-1")
    story.mark(80, "load_step")
    story.scale(100, 2)
    story.pod("llm-b", "on-demand-1", 101)
    limits = {"ready_s_max": 3000, "started_s_max": 60}
    return Case(story.build(), ("it waited for its container to run longer than 60 s (T6)",), (), limits, 1, {})
