"""Nothing can be read for three minutes; then the first value is of before the crowd, and replicas go in the crowd."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.deployment(1)
    story.hpa()
    for at_s in range(0, 600, 5):
        story.sample(at_s, "gateway", "gateway_requests_in_flight", 1.0)
    for at_s in (*range(0, 200, 10), *range(400, 600, 10)):
        story.waiting(at_s, llm_a=0.0 if at_s < 420 else 40.0)
    for at_s in range(250, 450, 2):
        story.request(at_s, "llm-a", lasts_s=480 - at_s, ttft_ms=1000.0 * (475 - at_s) / 10)
    story.pod("llm-a", "on-demand-1")

    story.scale(50, 3)
    story.hpa_says(400, "0", wants=1)
    story.scale(401, 1)
    says = (
        "scaled down by a reading of the past 1 time (first: llm from 3 to 1, when too many for 1 had waited for 142.0",
    )
    limits = {"seen_s_max": 400, "hole_s_max": 400}
    numbers = {"scaled_down_by_the_past": 1, "scaled_down_blind": 0}
    return Case(story.build(), says, ("objects:8",), limits, None, numbers)
