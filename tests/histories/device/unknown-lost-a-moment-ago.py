"""A GPU was lost two minutes before the end."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1", gpus=2)
    story.pod("llm-a", "on-demand-1")

    story.gpus("on-demand-1", 480, 1)
    says = ("still lacked 1 GPU when the recording ended",)
    return Case(story.build(), says, (), {}, 1, {})
