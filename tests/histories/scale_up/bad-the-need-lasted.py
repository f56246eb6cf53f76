"""One low reading ends no need: the replica still answers the load step, far too late."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story(length_s=900)
    story.node("on-demand-1")
    story.deployment(1)
    story.hpa()
    story.pod("llm-a", "on-demand-1")
    story.mark(80, "load_step")
    for at_s in range(90, 620, 5):
        story.waiting(at_s, llm_a=0 if at_s % 100 == 0 else 9)
    story.scale(620, 2)
    story.pod("llm-b", "on-demand-1", 620.2, running_s=630, ready_s=660)
    story.request(700, "llm-b")
    return Case(story.build(), ("llm-b served only after",), (), {"ready_s_max": 200}, 1)
