"""Nothing was scraped for two minutes, the gateway neither."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.deployment(1)
    story.hpa()
    story.pod("llm-a", "on-demand-1")
    for at_s in [*range(0, 200, 10), *range(320, 600, 10)]:
        story.waiting(at_s, llm_a=0.0)
        story.sample(at_s + 1, "gateway", "gateway_requests_in_flight", 1.0)
    says = ("the recorder did not scrape for a while",)
    return Case(story.build(), says, (), {}, 0, {})
