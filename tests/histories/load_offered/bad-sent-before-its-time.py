"""Requests that went out before they were due were stamped by another clock, or not by the plan."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.traffic(10, 100, 1, ("llm-a",))
    story.traffic(100, 105, 1, ("llm-a",), lag_ms=-300.0)
    return Case(story.build(), ("5 requests went out before their time",), ("requests:90",), {}, 95)
