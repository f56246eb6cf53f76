"""What the queue gave was not recorded for a while."""

from __future__ import annotations

from cases import Case
from queues import asks, gets, queue
from story import Story


def case() -> Case:
    story = Story()
    queue(story, "q", 4)
    asks(story, 10, "a", 4)
    gets(story, 11, "a", 4)
    story.gap(12, 20, "Workload")
    return Case(story.build(), ("blind for Workload",))
