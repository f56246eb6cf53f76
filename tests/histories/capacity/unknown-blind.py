"""Nodes were not seen for a while."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story(time_scale=1, info={"prices_per_hour": {"on-demand": 12.0, "spot": 6.0}})
    story.node("on-demand-1")
    story.deployment(4)
    for pod in "abcd":
        story.pod(f"llm-{pod}", "on-demand-1")

    story.node("on-demand-2", 100, 120)
    story.gap(300, 320, "Node")
    says = ("blind for Node",)
    return Case(story.build(), says, (), {}, 1, {})
