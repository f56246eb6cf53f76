"""A job that is preempted lets go of its GPUs within its grace, and what was free of another's is borrowed."""

from __future__ import annotations

from cases import Case
from queues import asks, gets, loses, queue, runs
from story import Story


def case() -> Case:
    story = Story()
    queue(story, "q", 2, cohort="all")
    queue(story, "other", 2, cohort="all")
    asks(story, 10, "a", 4)
    gets(story, 12, "a", 4)
    pod = runs(story, 13, "a")
    asks(story, 100, "b", 2, "other")
    loses(story, 105, "a")
    gets(story, 106, "b", 2, "other")
    story.end(150, pod)
    says = ("2 workloads, 2 admitted", "no pod held GPUs without it for longer than 45.0 s")
    return Case(story.build(), says, (), {}, 2)
