"""Quota for one job of two: the second is admitted when the first has finished."""

from __future__ import annotations

from cases import Case
from queues import asks, ends, gets, queue, runs
from story import Story


def case() -> Case:
    story = Story()
    queue(story, "q", 4)
    for job in ("a", "b"):
        asks(story, 10, job, 4)
    gets(story, 11, "a", 4)
    pod = runs(story, 12, "a")
    story.end(200, pod)
    ends(story, 205, "a")
    gets(story, 210, "b", 4)
    runs(story, 211, "b")
    says = ("2 workloads, 2 admitted", "none waited beside free quota for longer than 10.0 s")
    return Case(story.build(), says, (), {}, 2, {"over_quota": 0})
