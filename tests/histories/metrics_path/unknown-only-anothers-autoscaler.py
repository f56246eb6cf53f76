"""Autoscalers of others, one in another namespace and one of another workload, cannot read their CPU for minutes."""

from __future__ import annotations

from cases import Case
from story import Json, Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.deployment(1)
    story.pod("llm-a", "on-demand-1")
    for name, namespace in (("shop", "shop"), ("index", "inference")):
        template = {"metadata": {"labels": {"app": name}}}
        story.put(-5, "Deployment", name, {"spec": {"replicas": 3, "template": template}}, namespace)
        ref = {"kind": "Deployment", "name": name}
        spec: Json = {"metrics": [{"type": "Resource", "resource": {"name": "cpu"}}], "scaleTargetRef": ref}
        story.put(-5, "HorizontalPodAutoscaler", name, {"spec": spec}, namespace)
        for at_s, status, reason in ((10, "True", "ValidMetricFound"), (100, "False", "FailedGetResourceMetric")):
            active = {"type": "ScalingActive", "status": status, "reason": reason}
            told = {"conditions": [active]}
            story.change(at_s, "HorizontalPodAutoscaler", name, lambda h, told=told: h.update(status=told))
    return Case(story.build(), ("no autoscaler reads a metric",), (), {}, 0, {"holes": 0})
