"""Nobody answers for CPU for two minutes, and the size stays as it was."""

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
    story.hpa_says(300, "0")
    says = ("nothing was read for 120.0 s (12.00 s on the clock), and no replica was taken away meanwhile",)
    return Case(story.build(), says, (), {"seen_s_max": 400, "hole_s_max": 400}, 1, {"scaled_down_blind": 0})
