"""Two pods run with the same device."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1", gpus=2)
    story.pod("llm-a", "on-demand-1")

    story.pod("llm-b", "on-demand-1", 100, bound_s=101, running_s=105, ready_s=120)
    for pod in ("llm-a", "llm-b"):
        story.devices(150, pod, "GPU-7")
    says = ("GPU-7 belongs to two pods",)
    return Case(story.build(), says, ("objects:9",), {}, 1, {"given_twice": 1})
