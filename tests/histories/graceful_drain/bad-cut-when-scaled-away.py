"""A stream cut by a scale-down is lost, whatever the fault did."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import FaultStage, Outcome


def case() -> Case:
    story = Story()
    story.node("idle-1")
    story.node("on-demand-1")
    story.deployment(2)
    story.pod("llm-a", "on-demand-1")
    story.pod("llm-b", "on-demand-1")
    story.fault(300, FaultStage.INJECTED, "idle-1")
    story.request(395, "llm-a", Outcome.RESET_MID_STREAM, lasts_s=16)
    story.scale(400, 1)
    story.evict(400.2, "llm-a", None)
    story.end(411, "llm-a", 143)
    return Case(story.build(), ("1 aborted on SIGTERM (request 0; llm-a on on-demand-1)",), ("requests:0",), {}, 0)
