"""An answer in one piece has no times of tokens: it is left out of their limits, and its end is its latency."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.traffic(100, 170, 1, ("llm-a",))
    tokens = {"chunks": 0, "first_chunk_ns": None, "first_token_ns": None, "last_token_ns": None, "gap_max_ns": None}
    story.traffic(170, 240, 1, ("llm-a",), stream=False, lasts_s=30.0, **tokens)
    numbers = {"ttft_ms_p95_n": 70, "ttft_ms_p95_late": 0, "e2e_ms_p95_n": 140, "e2e_ms_p95_late": 0}
    return Case(story.build(), ("0 of 70 late",), (), {"ttft_ms_p95": 1000, "e2e_ms_p95": 30_000}, 140, numbers)
