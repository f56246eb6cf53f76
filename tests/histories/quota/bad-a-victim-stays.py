"""A job that lost its quota keeps its GPUs."""

from __future__ import annotations

from cases import Case
from queues import asks, gets, loses, queue, runs
from story import Story


def case() -> Case:
    story = Story()
    queue(story, "q", 4)
    asks(story, 10, "a", 4)
    gets(story, 11, "a", 4)
    runs(story, 12, "a")
    asks(story, 99, "b", 4)
    loses(story, 100, "a")
    gets(story, 101, "b", 4)
    return Case(story.build(), ("a-0 held GPUs without quota for", "(limit 120 s)"), ("objects:a-0",))
