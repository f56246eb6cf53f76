"""A history that keeps no managedFields cannot tell who wrote."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.deployment(4)
    story.hpa(replicas_max=7)

    story.scale(100, 7, None)
    says = ("does not say who made 1 change of a size",)
    return Case(story.build(), says, (), {}, 1, {})
