"""A workload is admitted, and its pod can be scheduled five seconds later."""

from __future__ import annotations

from cases import Case
from queues import asks, gets, opens, queue, shut
from story import Story


def case() -> Case:
    story = Story()
    queue(story, "q", 4)
    asks(story, 10, "a", 4)
    pod = shut(story, 10, "a")
    gets(story, 20, "a", 4)
    opens(story, 25, pod)
    says = ("1 workload, 1 admitted", "1 gate gone within 5.0 s")
    return Case(story.build(), says, (), {}, 1, {"gates": 1})
