"""No pod of the workload was ready when the fault struck, and none came: nothing says how many there should be."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import FaultStage


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    for at_s, stage in ((199, "planned"), (200, "injected"), (201, "observed"), (230, "ended")):
        story.fault(at_s, FaultStage(stage), "on-demand-1")
    story.node("other", 590)
    says = ("no pod was ready when the first fault struck", "nothing recorded says how many are wanted")
    return Case(story.build(), says, ("faults:3",), {}, 1, {})
