"""Half of the GPUs serve nobody, and a token costs more than allowed."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story(time_scale=1, info={"prices_per_hour": {"on-demand": 12.0, "spot": 6.0}})
    story.node("on-demand-1")
    story.deployment(4)
    for pod in "abcd":
        story.pod(f"llm-{pod}", "on-demand-1")

    story.node("on-demand-9")
    story.request(10, "llm-a", output_tokens=100_000)
    says = ("gpu_idle_ratio was 0.5 (limit 0.4)", "cost_per_million_tokens was 40 (limit 30)")
    return Case(story.build(), says, (), {"gpu_idle_ratio_max": 0.4, "cost_per_million_tokens_max": 30.0}, 2, {})
