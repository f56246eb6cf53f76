"""No pod was bound during the load, and no GPU was lost."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1", gpus=2)
    story.pod("llm-a", "on-demand-1")
    says = ("no pod with GPUs was bound",)
    return Case(story.build(), says, (), {}, 0, {})
