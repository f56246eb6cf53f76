"""Before the drain a budget was deleted that allowed nothing, one that selected nothing, and one that another replaced
under its name."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("spot-1")
    story.node("on-demand-1")
    story.deployment(2)
    for pod in ("llm-a", "llm-b"):
        story.pod(pod, "on-demand-1")
    story.pod("llm-c", "spot-1")
    never = {"expectedPods": 3, "desiredHealthy": 3, "currentHealthy": 3, "disruptionsAllowed": 0}
    nothing = {"expectedPods": 0, "desiredHealthy": 0, "currentHealthy": 0, "disruptionsAllowed": 0}
    for name, app, status in (("strict", "llm", never), ("typo", "lllm", nothing)):
        spec = {"maxUnavailable": 0, "selector": {"matchLabels": {"app": app}}}
        story.put(-5, "PodDisruptionBudget", name, {"spec": spec, "status": status})
        story.remove(100, "PodDisruptionBudget", name)
    story.budget(2, 0)
    story.remove(110, "PodDisruptionBudget", "llm")
    story.budget(2, 1, 111)
    story.taint("spot-1", 200)
    story.evict(201, "llm-c")
    story.end(210, "llm-c")
    return Case(story.build(), ("1 voluntary disruption under budget llm",), (), {}, 1, {"voluntary": 1, "refused": 0})
