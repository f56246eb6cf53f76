"""The model took so long to load that the time was up."""

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
    story.pod("llm-b", "on-demand-1", 101, running_s=105, ready_s=300)
    story.request(305, "llm-b", ttft_ms=500.0)
    says = ("1 of 1 added replica not in time", "llm-b served only after 230.0 s")
    return Case(story.build(), says, ("objects:11",), {"ready_s_max": 200}, 1, {"added_ready_s_worst": 230.0})
