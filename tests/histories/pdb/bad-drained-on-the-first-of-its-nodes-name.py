"""A drain waits for a pod whose budget never allows anything; its node registers anew, and only then the pod goes."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    for node in ("on-demand-1", "on-demand-2"):
        story.node(node)
    story.deployment(2)
    status = {"expectedPods": 2, "desiredHealthy": 2, "currentHealthy": 2, "disruptionsAllowed": 0}
    spec = {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "llm"}}}
    story.put(-4, "PodDisruptionBudget", "llm", {"spec": spec, "status": status})
    story.pod("llm-a", "on-demand-1")
    story.pod("llm-b", "on-demand-2")
    story.taint("on-demand-1", 200)
    story.node_gone("on-demand-1", 300)
    story.node("on-demand-1", 301, usable_s=303)
    story.remove(400, "Pod", "llm-a")
    says = ("llm allows no disruption even with all pods healthy, so that llm-a was held back",)
    return Case(story.build(), says, (), {}, 1, {"refused": 1, "overdrawn": 0})
