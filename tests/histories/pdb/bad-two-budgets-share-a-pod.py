"""Two budgets cover a pod of the node that is drained: the Eviction API refuses it for ever."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("spot-1")
    story.deployment(2)
    story.budget(1, 1)
    other = {"spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "llm"}}}}
    story.put(-4, "PodDisruptionBudget", "llm-too", other)
    story.pod("llm-a", "spot-1")
    story.taint("spot-1", 320)
    return Case(story.build(), ("llm-a is under llm and llm-too at once",), (), {}, 1, {"overdrawn": 0})
