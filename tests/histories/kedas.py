"""A crowd before an autoscaler that KEDA feeds, as three histories tell it."""

from __future__ import annotations

from story import Json, Story

METRIC = "s0-prometheus"


def crowd(until_s: int = 160) -> Story:
    """Requests wait from 100 s of the load to five seconds after ``until_s``, more and more, before one replica."""
    story = Story()
    story.deployment(1)
    story.pod("llm-a", "on-demand-1")
    metric = {"metric": {"name": METRIC}, "target": {"type": "AverageValue", "averageValue": "2"}}
    spec = {
        "scaleTargetRef": {"kind": "Deployment", "name": "llm"},
        "metrics": [{"type": "External", "external": metric}],
    }
    owner = {"kind": "ScaledObject", "name": "llm"}
    story.put(-5, "HorizontalPodAutoscaler", "keda-hpa-llm", {"metadata": {"ownerReferences": [owner]}, "spec": spec})
    trigger = {"type": "prometheus", "metadata": {"query": "sum(vllm:num_requests_waiting)", "threshold": "2"}}
    story.put(-5, "ScaledObject", "llm", {"spec": {"scaleTargetRef": {"name": "llm"}, "triggers": [trigger]}})
    for at_s in range(100, until_s, 2):
        story.request(at_s, "llm-a", lasts_s=until_s + 10 - at_s, ttft_ms=1000.0 * (until_s + 5 - at_s) / 10)
    return story


def says(story: Story, at_s: float, value: str | None) -> None:
    """The autoscaler's status; None: that it cannot read the metric."""
    read = {"metric": {"name": METRIC}, "current": {"averageValue": value}}
    reason = "ValidMetricFound" if value else "FailedGetExternalMetric"
    active: Json = {"type": "ScalingActive", "status": str(value is not None), "reason": reason}
    current = [{"type": "External", "external": read}] if value else []
    status = {"conditions": [active], "currentMetrics": current}
    story.change(at_s, "HorizontalPodAutoscaler", "keda-hpa-llm", lambda h: h.update(status=status))
