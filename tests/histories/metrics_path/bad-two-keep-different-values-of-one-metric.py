"""Requests wait for one autoscaler and not for another that keeps more of the same metric; the metric says 0."""

from __future__ import annotations

from cases import Case
from queue_read import one_replica


def case() -> Case:
    story = one_replica()
    story.hpa("1000", name="other")
    for at_s in range(100, 300, 2):
        story.request(at_s, "llm-a", lasts_s=310 - at_s, ttft_ms=1000.0 * (305 - at_s) / 10)
    for at_s in range(0, 600, 10):
        story.waiting(at_s, llm_a=0.0)
    return Case(story.build(), ("never showed 1 time",), (), {}, 1, {"never_read": 1, "holes": 0})
