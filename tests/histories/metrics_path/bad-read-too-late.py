"""The metric follows a minute and a half after the requests."""

from __future__ import annotations

from cases import Case
from queue_read import one_replica


def case() -> Case:
    story = one_replica()

    for at_s in range(100, 300, 2):
        story.request(at_s, "llm-a", lasts_s=310 - at_s, ttft_ms=1000.0 * (305 - at_s) / 10)
    for at_s in range(0, 600, 10):
        story.waiting(at_s, llm_a=9.0 if 200 <= at_s < 300 else 0.0)
    says = ("it could be read only after 91.0 s",)
    return Case(
        story.build(), says, ("samples:custom.metrics/vllm_num_requests_waiting",), {}, 1, {"lag_s_worst": 90.99}
    )
