"""A quarter late is surely no p95."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.traffic(100, 160, 1, ("llm-a",), ttft_ms=300.0)
    story.traffic(160, 180, 1, ("llm-a",), ttft_ms=2500.0, lasts_s=30.0)
    case = ("20 of 80 late", "surely not 95% in time")
    return Case(story.build(), case, ("requests:60",), {"ttft_ms_p95": 1000}, 80, {"ttft_ms_p95": 2500.0})
