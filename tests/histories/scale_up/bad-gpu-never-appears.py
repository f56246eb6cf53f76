"""The node was Ready, but its GPUs never became allocatable."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1", gpus=1)
    story.deployment(1)
    story.pod("llm-a", "on-demand-1")
    story.mark(80, "load_step")
    story.scale(100, 2)
    story.pod("llm-b", None, 101, refused_s=102)
    story.claim("on-demand-2", 104, 106)
    story.node("on-demand-2", 140, 160, gpus=0)
    return Case(story.build(), ("waited for the GPU to appear",), (), {"ready_s_max": 200}, 1)
