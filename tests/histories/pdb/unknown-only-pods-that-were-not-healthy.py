"""A drain takes a pod that was not healthy when too few were so already: the budget was not put to the test."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.budget(3, 0)
    for name in "abc":
        story.pod(f"llm-{name}", "on-demand-1")
    story.unready(290, "llm-a")
    story.evict(300, "llm-a")
    return Case(story.build(), ("only pods that were not healthy were disrupted",), (), {}, 1, {"overdrawn": 0})
