"""No overdraft was seen, but the watch of pods had a gap."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.budget(1, 1)
    story.pod("llm-a", "on-demand-1")
    story.pod("llm-b", "on-demand-1")
    story.evict(300, "llm-a")
    story.end(310, "llm-a")
    story.gap(320, 330, "Pod")
    return Case(story.build(), ("blind for Pod",), (), {}, 1)
