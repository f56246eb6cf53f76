"""There was nothing to choose."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.pod("llm-a", "on-demand-1")
    story.traffic(10, 60, 1, ("llm-a",))
    return Case(story.build(), ("never two ready replicas",), (), {}, 0)
