"""An admission check says Retry once: the workload is queued again in time, and admitted."""

from __future__ import annotations

from cases import Case
from queues import asks, gets, loses, put_off, queue, reserves
from story import Story


def case() -> Case:
    story = Story()
    queue(story, "q", 4)
    asks(story, 10, "a", 4)
    reserves(story, 20, "a", 4)
    put_off(story, 60, "a")
    loses(story, 150, "a")
    gets(story, 160, "a", 4)
    says = ("1 workload, 1 admitted",)
    return Case(story.build(), says, (), {}, 1, {"admitted": 1})
