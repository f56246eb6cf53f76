"""No request was planned in the phase: not measured, never zero."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.traffic(100, 200, 1, ("llm-a",))
    spec = {"ttft_ms_p95": 1000, "phase": "fault"}
    return Case(story.build(), ("no request was planned in phase fault",), (), spec, 0, {"ttft_ms_p95": None})
