"""Sixty in time are enough for a p95."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.traffic(100, 160, 1, ("llm-a",), ttft_ms=300.0)
    numbers = {"ttft_ms_p95": 300.0, "ttft_ms_p95_n": 60, "ttft_ms_p95_late": 0}
    return Case(story.build(), ("60 requests", "surely 95% in time"), (), {"ttft_ms_p95": 1000}, 60, numbers)
