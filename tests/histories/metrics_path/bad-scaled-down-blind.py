"""The autoscaler cannot read its metric, and takes replicas away."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.deployment(1)
    story.hpa()
    story.pod("llm-a", "on-demand-1")
    for at_s in range(0, 600, 5):
        story.sample(at_s, "gateway", "gateway_requests_in_flight", 1.0)

    story.scale(50, 3)
    story.hpa_says(200, None, "FailedGetPodsMetric")
    story.scale(230, 1)
    story.hpa_says(230.1, None, "FailedGetPodsMetric", wants=1)
    for at_s in range(0, 600, 10):
        story.waiting(at_s, llm_a=0.0)
    says = (
        "scaled down blind 1 time (first: llm from 3 to 1, while HorizontalPodAutoscaler "
        "inference/llm said FailedGetPodsMetric)",
    )
    return Case(story.build(), says, ("objects:8",), {}, 1, {"scaled_down_blind": 1})
