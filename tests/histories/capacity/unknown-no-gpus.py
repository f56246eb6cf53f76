"""No node has GPUs."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("cpu-1", gpus=0)
    says = ("no node with GPUs",)
    return Case(story.build(), says, (), {}, 0, {})
