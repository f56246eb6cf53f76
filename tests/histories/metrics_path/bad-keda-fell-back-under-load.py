"""KEDA cannot read its source, makes up the number of its fallback, and the autoscaler takes replicas away by it."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.deployment(1)
    story.pod("llm-a", "on-demand-1")
    ref = {"spec": {"scaleTargetRef": {"kind": "Deployment", "name": "llm"}, "metrics": [{"type": "External"}]}}
    story.put(-5, "HorizontalPodAutoscaler", "keda-hpa-llm", ref)
    spec = {"scaleTargetRef": {"name": "llm"}, "fallback": {"replicas": 5, "failureThreshold": 3}}
    fine = {"conditions": [{"type": "Fallback", "status": "False"}]}
    story.put(-5, "ScaledObject", "llm", {"spec": spec, "status": fine})

    story.scale(50, 8)
    fell = {"conditions": [{"type": "Fallback", "status": "True", "reason": "FallbackExists"}]}
    story.change(200, "ScaledObject", "llm", lambda o: o.update(status=fell))
    story.scale(230, 5)
    says = (
        "scaled down blind 1 time (first: llm from 8 to 5, while ScaledObject inference/llm could not read its source "
        "and fell back to 5)",
    )
    return Case(story.build(), says, (), {}, 1, {"scaled_down_blind": 1})
