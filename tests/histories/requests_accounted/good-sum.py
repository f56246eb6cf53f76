"""Planned is the sum of outcomes."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import Outcome


def case() -> Case:
    story = Story()
    story.request(1, "llm-a")
    story.request(2, "llm-a")
    story.request(3, outcome=Outcome.NOT_SENT)
    return Case(story.build(), ("3 planned = 2 ok + 1 not_sent",), exercised=3, numbers={"outcome_ok": 2})
