"""The sizes were not seen for a while."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.deployment(1)
    story.hpa()
    story.pod("llm-a", "on-demand-1")
    story.mark(80, "load_step")

    story.scale(100, 3)
    story.scale(400, 1)
    story.gap(200, 260, "Deployment")
    says = ("blind for Deployment",)
    return Case(story.build(), says, (), {}, 1, {})
