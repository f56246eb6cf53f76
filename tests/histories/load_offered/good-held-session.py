"""A turn whose predecessor had not ended is the system's doing, and stands apart."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import Outcome


def case() -> Case:
    story = Story()
    story.traffic(0, 100, 1, ("llm-a",))
    story.request(101, outcome=Outcome.NOT_SENT, reason="session")
    return Case(story.build(), ("100 of 101",), numbers={"not_sent_session": 1, "not_sent": 0})
