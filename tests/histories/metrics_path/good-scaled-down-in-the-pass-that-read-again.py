"""The metric is back, and the autoscaler sets the size a moment before its status says that it could read."""

from __future__ import annotations

from cases import Case
from queue_read import one_replica


def case() -> Case:
    story = one_replica()
    for at_s in range(100, 160, 2):
        story.request(at_s, "llm-a", lasts_s=170 - at_s, ttft_ms=1000.0 * (165 - at_s) / 10)
    for at_s in range(0, 600, 10):
        story.waiting(at_s, llm_a=9.0 if 120 <= at_s < 170 else 0.0)

    story.scale(180, 3)
    story.hpa_says(210, None, "FailedGetPodsMetric")
    story.scale(230, 1)
    story.hpa_says(230.1, "0", wants=1)
    return Case(story.build(), ("1 time that requests waited, read within",), numbers={"scaled_down_blind": 0})
