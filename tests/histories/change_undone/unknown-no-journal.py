"""A fault was injected, but the journal has no undo."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import FaultStage


def case() -> Case:
    story = Story(info={"undo_planned": 0})
    story.fault(10, FaultStage.INJECTED, "spot-1")
    return Case(story.build(), ("1 fault injected", "not known"))
