"""Two hundred seconds of waiting, and the metric says 0."""

from __future__ import annotations

from cases import Case
from queue_read import one_replica


def case() -> Case:
    story = one_replica()

    for at_s in range(100, 300, 2):
        story.request(at_s, "llm-a", lasts_s=310 - at_s, ttft_ms=1000.0 * (305 - at_s) / 10)
    for at_s in range(0, 600, 10):
        story.waiting(at_s, llm_a=0.0)
    says = ("vllm_num_requests_waiting never showed 1 time that requests waited: 0 was read for",)
    return Case(story.build(), says, ("samples:custom.metrics/vllm_num_requests_waiting",), {}, 1, {"never_read": 1})
