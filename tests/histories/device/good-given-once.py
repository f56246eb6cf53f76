"""A pod gets the free GPU; later one GPU is unhealthy for a minute."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1", gpus=2)
    story.pod("llm-a", "on-demand-1")

    story.pod("llm-b", "on-demand-1", 100, bound_s=101, running_s=105, ready_s=120)
    story.gpus("on-demand-1", 300, 1)
    story.gpus("on-demand-1", 360, 2)
    says = ("1 pod got GPUs during the load", "none given out twice", "1 loss of GPUs, the longest 60.0 s")
    return Case(story.build(), says, ("objects:8",), {}, 2, {"found_again": 1, "lost_s_worst": 60.0})
