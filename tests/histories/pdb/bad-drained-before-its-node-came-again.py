"""A drain deletes a pod while the budget allows nothing, and the node goes; another registers under its name."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    for node in ("on-demand-1", "on-demand-2"):
        story.node(node)
    story.deployment(2)
    story.budget(2, 0)
    story.pod("llm-a", "on-demand-1")
    story.pod("llm-b", "on-demand-2")
    story.taint("on-demand-1", 200)
    story.evict(202, "llm-a", None)
    story.end(210, "llm-a")
    story.node_gone("on-demand-1", 220)
    story.node("on-demand-1", 300, usable_s=310)
    says = ("1 of 1 voluntary disruption overdrew", "llm-a on on-demand-1 was deleted past the Eviction API")
    numbers = {"overdrawn": 1, "involuntary": 0, "refused": 1}
    return Case(story.build(), says, (), {}, 1, numbers)
