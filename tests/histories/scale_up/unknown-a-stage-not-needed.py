"""There was room at once, so the limit on a node's registration was never put to the test."""

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
    says = ("no added replica put registered_s_max to the test",)
    return Case(story.build(), says, (), {"ready_s_max": 300, "registered_s_max": 60, "loaded_s_max": 60}, 1)
