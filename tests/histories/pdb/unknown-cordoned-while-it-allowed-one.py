"""A node is cordoned and free again while the budget allows one; that it allows none later holds no drain back."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.deployment(2)
    status = {"desiredHealthy": 2, "currentHealthy": 2, "disruptionsAllowed": 0}
    spec = {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "llm"}}}
    story.put(-4, "PodDisruptionBudget", "llm", {"spec": spec, "status": {}})
    story.pod("llm-a", "on-demand-1")
    story.pod("llm-b", "on-demand-1")
    story.taint("on-demand-1", 200, "node.kubernetes.io/unschedulable")
    story.change(220, "Node", "on-demand-1", lambda n: n["spec"].update(taints=[]))
    story.change(300, "PodDisruptionBudget", "llm", lambda b: b.update(status=status | {"expectedPods": 2}))
    return Case(story.build(), ("no pod under a budget was disrupted on purpose",), (), {}, 0, {"refused": 0})
