"""Two replicas take turns."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.pod("llm-a", "on-demand-1")
    story.pod("llm-b", "on-demand-1")
    story.traffic(10, 60, 1, ("llm-a", "llm-b"))
    return Case(story.build(), ("0 of 50 requests",), (), {}, 50, {"misplaced": 0})
