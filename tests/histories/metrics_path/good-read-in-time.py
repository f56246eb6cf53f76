"""Requests wait for a minute, and the metric shows it twelve seconds later."""

from __future__ import annotations

from cases import Case
from queue_read import one_replica


def case() -> Case:
    story = one_replica()

    for at_s in range(100, 160, 2):
        story.request(at_s, "llm-a", lasts_s=170 - at_s, ttft_ms=1000.0 * (165 - at_s) / 10)
    for at_s in range(0, 600, 10):
        story.waiting(at_s, llm_a=9.0 if 120 <= at_s < 170 else 0.0)
    says = ("1 time that requests waited, read within", "no hole")
    return Case(
        story.build(),
        says,
        ("samples:custom.metrics/vllm_num_requests_waiting",),
        {},
        1,
        {"holes": 0, "lag_s_worst": 10.99},
    )
