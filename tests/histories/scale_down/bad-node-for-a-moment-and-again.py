"""A node goes again after seconds, and another comes under its name and stays."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.deployment(1)
    story.pod("llm-a", "on-demand-1")
    story.scale(100, 3)
    story.scale(250, 1)
    story.node("on-demand-2", 110, usable_s=112)
    story.node_gone("on-demand-2", 130)
    story.node("on-demand-2", 200, usable_s=201)
    spec = {"floor_s_max": 300, "node_life_s_min": 60}
    return Case(story.build(), ("1 node went again too soon: on-demand-2 (20.0 s",), (), spec)
