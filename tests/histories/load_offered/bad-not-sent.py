"""Some arrivals never went out."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import Outcome


def case() -> Case:
    story = Story()
    story.traffic(0, 50, 1, ("llm-a",))
    story.request(51, outcome=Outcome.NOT_SENT, reason="too many open connections")
    return Case(story.build(), ("1 request of 51 planned were never sent",), ("requests:50",), numbers={"not_sent": 1})
