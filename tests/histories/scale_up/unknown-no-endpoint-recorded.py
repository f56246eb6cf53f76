"""Endpoints were never recorded, so nothing tells that the new replica was routed."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.deployment(1)
    story.pod("llm-a", "on-demand-1")
    story.mark(80, "load_step")
    story.scale(100, 2)
    story.pod("llm-b", "on-demand-1", 101, running_s=105, ready_s=130)
    story.traffic(150, 400, 10, ("llm-a", "llm-b"))
    story._routes.clear()
    return Case(story.build(), ("no endpoint was recorded",), (), {"ready_s_max": 200}, 1)
