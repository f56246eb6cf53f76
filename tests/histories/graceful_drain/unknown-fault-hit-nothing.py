"""The interrupted node ran none of the workload's pods."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("spot-1")
    story.node("on-demand-1")
    story.pod("llm-a", "on-demand-1")
    story.pod("other", "spot-1", app="other")
    story.traffic(200, 400, 5, ("llm-a",))
    story.taint("spot-1", 320)
    story.evict(322, "other")
    return Case(story.build(), ("was not put to the test",), (), {}, 0)
