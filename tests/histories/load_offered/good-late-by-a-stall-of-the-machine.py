"""Sends that a stall of the machine held up are that stall's, not the generator's."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.traffic(0, 90, 1, ("llm-a",))
    story.stall(110, 2.0)
    story.request(92, "llm-a", lag_ms=1805.0)
    story.request(100, "llm-a", lag_ms=1010.0)
    return Case(story.build(), ("92 of 92",), numbers={"lag_ms_max": 10.0})
