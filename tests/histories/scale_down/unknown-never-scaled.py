"""The workload was at its floor all the time."""

from __future__ import annotations

from cases import Case
from scaled import one_replica


def case() -> Case:
    story = one_replica()
    story.node("other", 590)
    says = ("never above its floor",)
    return Case(story.build(), says, (), {}, 0, {})
