"""One change could not be taken back, and the effect of another one shows: the change that stands comes first."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import FaultStage


def case() -> Case:
    story = Story(info={"undo_planned": 2, "undo_left": ("reset_knob net.link",)})
    story.fault(31, FaultStage.HEAL_NOT_OBSERVED, "spot-1", fault_id="b-1", detail="undone, but NotReady")
    return Case(story.build(), ("1 of 2 changes", "reset_knob net.link"), ("undo", "faults:0"))
