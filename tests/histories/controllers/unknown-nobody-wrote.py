"""No size was changed."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.deployment(4)
    story.hpa(replicas_max=7)
    says = ("no size was changed",)
    return Case(story.build(), says, (), {}, 0, {})
