"""A workload holds the whole quota while its admission check says Pending, and runs nothing."""

from __future__ import annotations

from cases import Case
from queues import asks, queue, reserves
from story import Story


def case() -> Case:
    story = Story()
    queue(story, "q", 4)
    asks(story, 10, "a", 4)
    reserves(story, 20, "a", 4)
    says = ("Job a held quota for 4 GPUs and was not admitted (room is Pending) for 580.0 s", "(limit 120 s)")
    return Case(story.build(), says, ("objects:Job a",), {}, 1, {"admitted": 0})
