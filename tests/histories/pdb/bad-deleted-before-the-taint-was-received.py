"""A drain taints and deletes at once, and the recorder happens to hear of the deletions first."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("spot-1")
    story.node("on-demand-1")
    story.budget(3, 1)
    for name, node in zip("abcd", ["spot-1"] * 3 + ["on-demand-1"], strict=True):
        story.pod(f"llm-{name}", node)
    for name in "abc":
        story.evict(320, f"llm-{name}", None)
    story.taint("spot-1", 320.1)
    says = ("2 of 3 voluntary disruptions overdrew", "deleted past the Eviction API")
    return Case(story.build(), says, (), {}, 3, {"overdrawn": 2})
