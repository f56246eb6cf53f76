"""A notice was given, but nothing in the cluster reacted."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import FaultStage


def case() -> Case:
    story = Story()
    story.fault(0, FaultStage.PLANNED, "spot-1")
    story.fault(5, FaultStage.INJECTED, "spot-1")
    story.fault(9, FaultStage.NOT_OBSERVED, "spot-1", detail="no taint, no deletion")
    return Case(
        story.build(), ("1 of 1 planned fault did not", "no taint"), ("faults:0",), numbers={"faults_observed": 0}
    )
