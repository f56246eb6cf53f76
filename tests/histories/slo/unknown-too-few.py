"""Fifty in time are too few for a p95, and the sentence says how many would do."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.traffic(100, 150, 1, ("llm-a",))
    numbers = {"ttft_ms_p95_n_needed": 59, "ttft_ms_p99_n_needed": 299}
    spec = {"ttft_ms_p95": 1000, "ttft_ms_p99": 1000}
    return Case(story.build(), ("59 with none late", "299 with none late"), (), spec, 50, numbers)
