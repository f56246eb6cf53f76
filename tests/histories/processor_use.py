"""An autoscaler that goes by CPU, and nobody who answers for it for two minutes, as two histories tell it."""

from __future__ import annotations

from story import Json, Story


def unread(scaled_to: int | None) -> Story:
    """From 180 to 300 s of the load; at 200 s the size is lowered from three, where one is given."""
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
    if scaled_to is not None:
        story.scale(200, scaled_to)
    story.hpa_says(300, "0")
    return story
