"""A job waits for ever beside the quota that it needs."""

from __future__ import annotations

from cases import Case
from queues import asks, queue
from story import Story


def case() -> Case:
    story = Story()
    queue(story, "q", 4)
    asks(story, 10, "a", 4)
    says = ("Job a waited for 4 GPUs beside 4 in its queue for", "(limit 60 s)")
    return Case(story.build(), says, ("objects:Job a",), {}, 1)
