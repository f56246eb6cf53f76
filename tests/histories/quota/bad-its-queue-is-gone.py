"""Kueue's process has ended, and the job that waits beside free quota is not admitted before it is back."""

from __future__ import annotations

from cases import Case
from queues import asks, gets, queue
from story import Story

from harness.history.tables import FaultStage


def case() -> Case:
    story = Story()
    queue(story, "q", 4)
    for at_s, stage in ((5, FaultStage.INJECTED), (200, FaultStage.ENDED)):
        story.fault(at_s, stage, "kueue", fault="component_stopped", fault_id="component_stopped-1")
    asks(story, 10, "a", 4)
    gets(story, 205, "a", 4)
    return Case(story.build(), ("Job a waited for 4 GPUs beside 4 in its queue for 195.0 s",), ("objects:Job a",))
