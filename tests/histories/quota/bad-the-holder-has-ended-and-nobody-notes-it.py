"""Kueue is gone while the job that holds the quota ends: who waits is not admitted, though every GPU is free."""

from __future__ import annotations

from cases import Case
from queues import asks, gets, queue, runs
from story import Story


def case() -> Case:
    story = Story()
    queue(story, "q", 4)
    for job in ("a", "b"):
        asks(story, 10, job, 4)
    gets(story, 11, "a", 4)
    pod = runs(story, 12, "a")
    story.end(100, pod)
    return Case(story.build(), ("Job b waited for 4 GPUs beside 4 in its queue for",), ("objects:Job b",), {}, 2)
