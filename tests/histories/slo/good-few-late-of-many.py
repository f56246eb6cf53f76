"""Two late of 500 still surely keep a p99; a planned hang-up is nobody's lateness."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import Outcome


def case() -> Case:
    story = Story()
    story.traffic(100, 350, 0.5, ("llm-a",), ttft_ms=300.0)
    story._requests[3]["first_token_ns"] += 2_000_000_000
    story.request(360, "llm-a", Outcome.ABORTED_BY_CLIENT)
    spec = {"ttft_ms_p99": 1000, "good_ratio_min": 0.97}
    return Case(story.build(), ("500 requests", "1 of 500 late"), ("requests:3",), spec, 500, {"good_ratio": 499 / 500})
