"""Every limit holds as a p50, but too few requests are good."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import Outcome


def case() -> Case:
    story = Story()
    story.traffic(100, 160, 1, ("llm-a",), ttft_ms=300.0)
    story.traffic(160, 180, 1, (None,), outcome=Outcome.HTTP_5XX, status=503)
    spec = {"ttft_ms_p50": 1000, "good_ratio_min": 0.9}
    return Case(story.build(), ("good 75.0%", "surely not 90% good"), ("requests:60",), spec, 80, {"good_ratio": 0.75})
