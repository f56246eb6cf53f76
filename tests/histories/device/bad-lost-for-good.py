"""A GPU is lost and does not come back."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1", gpus=2)
    story.pod("llm-a", "on-demand-1")

    story.gpus("on-demand-1", 100, 1)
    story.node("other", 590)
    says = ("on-demand-1 lacked 1 GPU for 500.0 s", "while Ready (limit 300 s)")
    return Case(story.build(), says, ("objects:3",), {}, 1, {"lost": 1, "found_again": 0})
