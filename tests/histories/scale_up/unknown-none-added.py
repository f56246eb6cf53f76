"""The autoscaler added nothing."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.deployment(1)
    story.pod("llm-a", "on-demand-1")
    story.mark(80, "load_step")
    return Case(story.build(), ("no replica was added",), (), {"ready_s_max": 200}, 0)
