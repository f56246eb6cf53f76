"""The budget was lowered while nobody watched budgets; by the last one seen the eviction would be an overdraft."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.budget(3, 0)
    for name in "abc":
        story.pod(f"llm-{name}", "on-demand-1")
    story.evict(305, "llm-a")
    story.gap(300, 310, "PodDisruptionBudget")
    story.budget(2, 0, 311)
    story.end(315, "llm-a")
    return Case(story.build(), ("blind for PodDisruptionBudget",), (), {}, 1, {"overdrawn": 0})
