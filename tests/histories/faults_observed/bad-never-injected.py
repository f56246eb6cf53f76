"""The second fault never came."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import FaultStage


def case() -> Case:
    story = Story()
    for stage in (FaultStage.PLANNED, FaultStage.INJECTED, FaultStage.OBSERVED):
        story.fault(0, stage, "spot-1", fault_id="a-1")
    story.fault(0, FaultStage.PLANNED, "spot-2", fault_id="b-1")
    return Case(story.build(), ("1 of 2 planned faults", "b-1 was never injected"), ("faults:3",))
