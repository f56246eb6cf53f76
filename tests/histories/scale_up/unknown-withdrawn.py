"""The added replica was itself evicted before its time was up."""

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
    story.evict(110, "llm-b")
    story.end(115, "llm-b")
    return Case(story.build(), ("it was withdrawn after 30.0 s",), (), {"ready_s_max": 200}, 1)
