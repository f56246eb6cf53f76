"""The effect came late, and on a node that nobody had picked: no failure, but said."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import FaultStage


def case() -> Case:
    story = Story()
    story.fault(0, FaultStage.PLANNED, "spot-1")
    story.fault(5, FaultStage.INJECTED, "spot-1")
    late, more = "late: seen after 90 s, expected within 30 s", "not picked, but showing it too: spot-2: tainted"
    story.fault(95, FaultStage.OBSERVED, "spot-1", detail=f"spot-1: tainted; {late}; {more}")
    return Case(story.build(), ("all injected", late, more), exercised=1)
