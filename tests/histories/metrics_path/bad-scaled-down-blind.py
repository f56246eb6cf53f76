"""The autoscaler cannot read its metric, and takes replicas away."""

from __future__ import annotations

from cases import Case
from queue_read import one_replica


def case() -> Case:
    story = one_replica()

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
