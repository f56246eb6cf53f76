"""The watch of pods had a gap while the late replica should have been seen."""

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
    story.pod("llm-b", "on-demand-1", 101, running_s=105)
    story.gap(120, 350, "Pod")
    return Case(story.build(), ("recorder was blind",), (), {"ready_s_max": 200}, 1)
