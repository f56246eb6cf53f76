"""Each stage within its own limit."""

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
    story.pod("llm-b", "on-demand-1", 101, running_s=105, ready_s=150)
    story.request(151, "llm-b", ttft_ms=500.0)
    limits = {"ready_s_max": 300, "decided_s_max": 30, "started_s_max": 10, "loaded_s_max": 60}
    return Case(story.build(), ("1 added replica served",), (), limits, 1, {"added_served": 1})
