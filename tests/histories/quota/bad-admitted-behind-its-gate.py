"""A workload is admitted, and its pod keeps the gate of its queue for five minutes."""

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
    opens(story, 320, pod)
    says = ("a-0 had Kueue's gate though it was admitted for 300.0 s", "(limit 60 s)")
    return Case(story.build(), says, ("objects:a-0",), {}, 1, {"gates": 1})
