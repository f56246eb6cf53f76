"""In a queue of StrictFIFO a small job waits behind a large one, though there is quota for it."""

from __future__ import annotations

from cases import Case
from queues import asks, gets, queue
from story import Story


def case() -> Case:
    story = Story()
    queue(story, "q", 4, queueingStrategy="StrictFIFO")
    asks(story, 10, "a", 2)
    gets(story, 11, "a", 2)
    asks(story, 20, "large", 4)
    asks(story, 30, "small", 1)
    return Case(story.build(), ("3 workloads, 1 admitted",), (), {}, 3)
