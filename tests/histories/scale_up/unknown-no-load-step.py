"""Without a marked load step there is nothing to count from."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.deployment(1)
    story.pod("llm-a", "on-demand-1")
    story.scale(100, 2)
    story.pod("llm-b", "on-demand-1", 101, running_s=105, ready_s=130)
    story.request(140, "llm-b")
    return Case(story.build(), ("no load step was marked",), (), {"ready_s_max": 200}, 1)
