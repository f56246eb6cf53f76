"""Two faults were planned; one took effect, and of the other the history says nothing at all."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import FaultStage


def case() -> Case:
    story = Story(info={"planned_faults": ("a-1", "b-1")})
    for at_s, stage in ((0, FaultStage.PLANNED), (5, FaultStage.INJECTED), (6, FaultStage.OBSERVED)):
        story.fault(at_s, stage, "spot-1", fault_id="a-1")
    says = ("1 of 2 planned faults did not take effect", "b-1 left no trace")
    return Case(story.build(), says, exercised=2, numbers={"faults": 2, "faults_observed": 1})
