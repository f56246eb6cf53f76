"""The workload was at its floor all the time."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.deployment(1)
    story.hpa()
    story.pod("llm-a", "on-demand-1")
    story.mark(80, "load_step")

    story.node("other", 590)
    says = ("never above its floor",)
    return Case(story.build(), says, (), {}, 0, {})
