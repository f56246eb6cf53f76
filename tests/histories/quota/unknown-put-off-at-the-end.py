"""A workload was evicted, and the recording ends before it had to be in its queue again."""

from __future__ import annotations

from cases import Case
from queues import asks, gets, put_off, queue
from story import Story


def case() -> Case:
    story = Story()
    queue(story, "q", 4)
    asks(story, 10, "a", 4)
    gets(story, 20, "a", 4)
    put_off(story, 400, "a")
    says = ("Job a was put off (AdmissionCheck) and not queued again for 200.0 s", "before its time was up")
    return Case(story.build(), says, (), {}, 1)
