"""Every request went out at its time."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.traffic(0, 200, 1, ("llm-a",), lag_ms=3.0)
    return Case(story.build(), ("200 of 200", "3 ms at p99"), exercised=200, numbers={"sent_late": 0, "not_sent": 0})
