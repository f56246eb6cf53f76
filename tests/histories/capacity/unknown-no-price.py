"""A limit on cost, and nobody stated a price."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.pod("llm-a", "on-demand-1")
    story.request(10, "llm-a")
    says = ("not measured: cost_per_hour",)
    return Case(story.build(), says, (), {"cost_per_hour_max": 10.0}, 1, {})
