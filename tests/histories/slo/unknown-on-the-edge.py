"""Five late of 100 at a p95: neither kept nor broken for sure."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.traffic(100, 195, 1, ("llm-a",), ttft_ms=300.0)
    story.traffic(195, 200, 1, ("llm-a",), ttft_ms=2500.0, lasts_s=30.0)
    return Case(story.build(), ("5 of 100 late", "not sure of 95%"), ("requests:95",), {"ttft_ms_p95": 1000}, 100)
