"""The API itself admitted an eviction that left too few."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.budget(2, 1)
    for name in "abc":
        story.pod(f"llm-{name}", "on-demand-1")
    story.evict(300, "llm-a")
    story.evict(301, "llm-b")
    says = ("1 of 2 voluntary disruptions overdrew", "llm-b on on-demand-1 was evicted, leaving 1 healthy")
    return Case(story.build(), says, (), {}, 2, {"overdrawn": 1, "healthy_spare_min": -1})
