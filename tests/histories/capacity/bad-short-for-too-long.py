"""A pod waits for GPUs until the end, eight minutes long."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story(time_scale=1, info={"prices_per_hour": {"on-demand": 12.0, "spot": 6.0}})
    story.node("on-demand-1")
    story.deployment(4)
    for pod in "abcd":
        story.pod(f"llm-{pod}", "on-demand-1")

    story.scale(100, 5)
    story.pod("llm-e", None, 100.5, refused_s=101)
    story.node("other", 590)
    says = ("1 pod short for too long: llm-e waited for GPUs for 499.0 s (limit 300 s)",)
    return Case(story.build(), says, ("objects:14",), {"short_s_max": 300.0}, None, {"pods_short": 1})
