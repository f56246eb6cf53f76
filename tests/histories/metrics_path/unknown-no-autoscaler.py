"""Nobody reads a metric."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.deployment(1)
    story.pod("llm-a", "on-demand-1")
    says = ("no autoscaler reads a metric",)
    return Case(story.build(), says, (), {}, 0, {})
