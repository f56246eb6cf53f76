"""Failed, timed-out and unsent requests are late in every limit."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import Outcome


def case() -> Case:
    story = Story()
    story.traffic(100, 150, 1, ("llm-a",), ttft_ms=300.0)
    for at_s in range(5):
        story.request(150 + at_s, "llm-a", Outcome.RESET_MID_STREAM)
        story.request(160 + at_s, None, Outcome.CONNECT_TIMEOUT)
        story.request(170 + at_s, None, Outcome.NOT_SENT, reason="no socket left")
    spec = {"ttft_ms_p95": 1000, "tpot_ms_p95": 1000}
    return Case(
        story.build(),
        ("15 of 65 late", "beyond the failed ones"),
        ("requests:50",),
        spec,
        65,
        {"ttft_ms_p95_late": 15, "tpot_ms_p95_late": 15, "ttft_ms_p95": None},
    )
