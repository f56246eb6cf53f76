"""Requests wait for half a minute; the metric says so a minute and a half later, when nobody waits any more."""

from __future__ import annotations

from cases import Case
from queue_read import one_replica


def case() -> Case:
    story = one_replica()

    for at_s in range(100, 130, 2):
        story.request(at_s, "llm-a", lasts_s=140 - at_s, ttft_ms=1000.0 * (135 - at_s) / 10)
    for at_s in range(0, 600, 10):
        story.waiting(at_s, llm_a=9.0 if 190 <= at_s < 230 else 0.0)
    says = ("3 readings of the past", "85.0 s (8.50 s on the clock) after the last had its answer (limit 60 s)")
    return Case(story.build(), says, ("samples:custom.metrics/vllm_num_requests_waiting",), {}, 3)
