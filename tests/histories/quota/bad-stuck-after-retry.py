"""An admission check says Retry: the workload is evicted, and nobody ever queues it again."""

from __future__ import annotations

from cases import Case
from queues import asks, put_off, queue, reserves
from story import Story


def case() -> Case:
    story = Story()
    queue(story, "q", 4)
    asks(story, 10, "a", 4)
    reserves(story, 20, "a", 4)
    put_off(story, 60, "a")
    says = ("Job a was put off (AdmissionCheck) and not queued again for 540.0 s", "(limit 300 s)")
    return Case(story.build(), says, ("objects:Job a",), {}, 1, {"admitted": 0})
