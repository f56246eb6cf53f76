"""Only the asked-for phase is judged."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import FaultStage


def case() -> Case:
    story = Story()
    story.fault(200, FaultStage.INJECTED, "spot-1")
    story.fault(400, FaultStage.ENDED, "spot-1")
    story.traffic(100, 190, 1, ("llm-a",), ttft_ms=9000.0)
    story.traffic(201, 280, 1, ("llm-a",), ttft_ms=300.0)
    return Case(story.build(), ("79 requests in phase fault",), (), {"ttft_ms_p95": 1000, "phase": "fault"}, 79)
