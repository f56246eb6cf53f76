"""Nobody answers for CPU for two minutes, and replicas are taken away meanwhile."""

from __future__ import annotations

from cases import Case
from story import Json, Story


def case() -> Case:
    story = Story()
    story.deployment(1)
    cpu = {"name": "cpu", "target": {"type": "AverageValue", "averageValue": "500m"}}
    spec: Json = {"metrics": [{"type": "Resource", "resource": cpu}], "minReplicas": 1, "maxReplicas": 8}
    spec["scaleTargetRef"] = {"kind": "Deployment", "name": "llm"}
    story.put(-5, "HorizontalPodAutoscaler", "llm", {"spec": spec})
    story.pod("llm-a", "on-demand-1")
    story.scale(20, 3)
    story.hpa_says(30, "0")
    story.hpa_says(180, None, "FailedGetResourceMetric")
    story.scale(200, 1)
    story.hpa_says(300, "0")
    says = ("scaled down blind 1 time (first: llm from 3 to 1", "FailedGetResourceMetric")
    return Case(story.build(), says, (), {"seen_s_max": 400, "hole_s_max": 400}, None, {"scaled_down_blind": 1})
