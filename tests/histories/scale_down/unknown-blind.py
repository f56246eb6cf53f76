"""The sizes were not seen for a while."""

from __future__ import annotations

from cases import Case
from scaled import one_replica


def case() -> Case:
    story = one_replica()
    story.scale(100, 3)
    story.scale(400, 1)
    story.gap(200, 260, "Deployment")
    says = ("blind for Deployment",)
    return Case(story.build(), says, (), {}, 1, {})
