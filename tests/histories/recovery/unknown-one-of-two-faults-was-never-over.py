"""All was well after the first fault; the second was never over, so nobody knows what it would take to recover."""

from __future__ import annotations

from cases import Case
from drains import drained_at_200

from harness.history.tables import FaultStage


def case() -> Case:
    story = drained_at_200()
    story.pod("llm-c", "on-demand-1", 202.5, running_s=205, ready_s=230)
    story.node_gone("spot-1", 250)
    story.fault(300, FaultStage.INJECTED, "on-demand-1", fault_id="node_silent-1", fault="node_silent")
    story.node("other", 590)
    says = ("node_silent-1 was never over",)
    return Case(story.build(), says, ("faults:3",), {}, 1, {})
