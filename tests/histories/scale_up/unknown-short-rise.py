"""The queue was above the target for a moment only."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.deployment(1)
    story.hpa(replicas_max=8)
    story.pod("llm-a", "on-demand-1")
    story.mark(80, "load_step")
    for at_s in range(100, 110, 10):
        story.waiting(at_s, llm_a=9)
    return Case(story.build(), ("no replica was added",), (), {"ready_s_max": 200}, 0)
