"""An answer of one token has no time per token, so it is left out of that limit alone."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.traffic(100, 170, 1, ("llm-a",), output_tokens=10)
    story.traffic(170, 200, 1, ("llm-a",), output_tokens=1, lasts_s=90.0)
    numbers = {"tpot_ms_p95_n": 70, "tpot_ms_p95_late": 0}
    return Case(story.build(), ("0 of 70 late",), (), {"tpot_ms_p95": 100}, 100, numbers)
