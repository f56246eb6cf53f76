"""A workload waits beside free quota when the recording ends, and had time left."""

from __future__ import annotations

from cases import Case
from queues import asks, gets, queue
from story import Story


def case() -> Case:
    story = Story()
    queue(story, "q", 4)
    asks(story, 10, "a", 2)
    gets(story, 12, "a", 2)
    asks(story, 560, "b", 2)
    says = ("Job b waited for 2 GPUs beside 2 in its queue for 40.0 s", "before its time was up")
    return Case(story.build(), says, (), {}, 2)
