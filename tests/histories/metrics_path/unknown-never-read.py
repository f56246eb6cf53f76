"""The recorder got no value at all."""

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
    says = ("nobody was ever seen to read a value of vllm_num_requests_waiting",)
    return Case(story.build(), says, (), {}, 0, {})
