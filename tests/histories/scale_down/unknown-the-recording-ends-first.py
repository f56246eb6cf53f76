"""Two minutes after the last need nobody can say that it will not come back."""

from __future__ import annotations

from cases import Case
from scaled import one_replica


def case() -> Case:
    story = one_replica()
    story.scale(480, 3)
    story.node("other", 590)
    says = ("the recording ends before its time was up",)
    return Case(story.build(), says, (), {}, 0, {})
