"""A workload that asks for no GPU puts no quota of GPUs to the test, however long it waits for something else."""

from __future__ import annotations

from cases import Case
from queues import asks, queue
from story import Story


def case() -> Case:
    story = Story()
    queue(story, "q", 4)
    asks(story, 10, "a", 0)
    return Case(story.build(), ("no workload that asks for GPUs was in a queue",), (), {}, 0)
