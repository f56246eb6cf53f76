"""The same hole, and the first value after it takes replicas away; no more waited than the rest may leave waiting."""

from __future__ import annotations

from cases import Case
from queue_read import one_replica


def case() -> Case:
    story = one_replica()
    for at_s in range(50, 110, 2):
        story.request(at_s, "llm-a", lasts_s=120 - at_s, ttft_ms=1000.0 * (115 - at_s) / 10)
    for at_s in (*range(0, 200, 10), *range(400, 600, 10)):
        story.waiting(at_s, llm_a=9.0 if 70 <= at_s < 120 else 0.0)
    for at_s in (250, 252):
        story.request(at_s, "llm-a", lasts_s=480 - at_s, ttft_ms=1000.0 * (475 - at_s) / 10)

    story.scale(60, 3)
    story.hpa_says(400, "0", wants=1)
    story.scale(401, 1)
    limits = {"seen_s_max": 400, "hole_s_max": 400}
    return Case(story.build(), ("1 time that requests waited",), (), limits, None, {"scaled_down_by_the_past": 0})
