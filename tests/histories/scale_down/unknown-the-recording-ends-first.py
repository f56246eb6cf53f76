"""Two minutes after the last need nobody can say that it will not come back."""

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

    story.scale(480, 3)
    story.node("other", 590)
    says = ("the recording ends before its time was up",)
    return Case(story.build(), says, (), {}, 0, {})
