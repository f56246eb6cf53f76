"""The metric was 0 all the time, and rightly so."""

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

    story.traffic(10, 500, 5, ("llm-a",))
    for at_s in range(0, 600, 10):
        story.waiting(at_s, llm_a=0.0)
    says = ("requests never waited for long enough",)
    return Case(story.build(), says, (), {}, 0, {})
