"""A budget with a typo in its selector was deleted before the drain: it is not the one that protected nobody."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("spot-1")
    story.deployment(2)
    status = {"expectedPods": 0, "desiredHealthy": 0, "currentHealthy": 0, "disruptionsAllowed": 0}
    typo = {"spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "lllm"}}}, "status": status}
    story.put(-4, "PodDisruptionBudget", "llm", typo)
    story.pod("llm-a", "spot-1")
    story.remove(100, "PodDisruptionBudget", "llm")
    story.taint("spot-1", 320)
    story.evict(321, "llm-a")
    return Case(story.build(), ("no pod under a budget was disrupted on purpose",), (), {}, 0, {})
