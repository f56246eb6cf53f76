"""Everything was taken back, but one node is still not Ready when it is looked at; another one was seen to be well."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import FaultStage


def case() -> Case:
    story = Story(info={"undo_planned": 2})
    for fault_id in ("a-1", "b-1"):
        story.fault(5, FaultStage.INJECTED, "spot-1", fault_id=fault_id)
        story.fault(20, FaultStage.HEALED, "spot-1", fault_id=fault_id)
    shows = "undone, but the effect still shows: spot-1: NotReady"
    story.fault(30, FaultStage.HEAL_NOT_OBSERVED, "spot-1", fault_id="a-1", detail="undone, but the effect still shows")
    story.fault(31, FaultStage.HEAL_OBSERVED, "spot-1", fault_id="a-1", detail="gone: spot-1")
    story.fault(31, FaultStage.HEAL_NOT_OBSERVED, "spot-1", fault_id="b-1", detail=shows)
    return Case(story.build(), ("1 fault of the harness undone", "b-1 undone", "spot-1: NotReady"), ("faults:6",))
