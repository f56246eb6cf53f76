"""The size turns back within a minute, and no load step explains it."""

from __future__ import annotations

from cases import Case
from scaled import one_replica


def case() -> Case:
    story = one_replica()
    story.scale(100, 3)
    story.scale(140, 1)
    story.scale(180, 3)
    story.scale(300, 1)
    says = ("2 reversals without a load step between", "llm from 1 to 3 to 1 within 40.0 s")
    return Case(story.build(), says, ("objects:8",), {}, 2, {"reversals": 2})
