"""A request waits for a pod that has crashed and was deleted; the next of its name answers it, and aborts it on
SIGTERM."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import Outcome


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.pod("llm-0", "on-demand-1")
    story.remove(205, "Pod", "llm-0")
    story.request(206, "llm-0", Outcome.ABORTED, ttft_ms=3000.0, lasts_s=45)
    story.pod("llm-0", "on-demand-1", 210, running_s=212, ready_s=230)
    story.evict(240, "llm-0")
    story.end(251, "llm-0")
    says = ("1 aborted on SIGTERM (request 0; llm-0 on on-demand-1)",)
    return Case(story.build(), says, ("requests:0",), {}, 1, {"streams_at_risk": 1, "streams_lost": 1})
