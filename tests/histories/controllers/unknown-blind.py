"""Sizes were not seen for a while."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.deployment(4)
    story.hpa(replicas_max=7)

    story.scale(100, 7)
    story.gap(200, 220, "Deployment")
    says = ("blind for Deployment",)
    return Case(story.build(), says, (), {}, 1, {})
