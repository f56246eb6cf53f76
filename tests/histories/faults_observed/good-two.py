"""Both planned faults took effect."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import FaultStage


def case() -> Case:
    story = Story()
    for fault_id in ("a-1", "b-1"):
        for at_s, stage in ((0, FaultStage.PLANNED), (5, FaultStage.INJECTED), (6, FaultStage.OBSERVED)):
            story.fault(at_s, stage, "spot-1", fault_id=fault_id)
    return Case(story.build(), ("2 planned faults", "all injected"), exercised=2)
