"""Three pods run on two GPUs: allocatable had lied."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1", gpus=2)
    story.pod("llm-a", "on-demand-1")

    story.pod("llm-b", "on-demand-1", 100, bound_s=101, running_s=105, ready_s=120)
    story.pod("llm-c", "on-demand-1", 200, bound_s=201, running_s=205, ready_s=220)
    says = ("on-demand-1 gave GPUs out twice: 3 GPUs are in use where there are 2",)
    return Case(story.build(), says, ("objects:10",), {}, 2, {"given_twice": 1})
