"""One waits beside GPUs of its cohort that another queue lends to nobody, and one in a queue that was stopped."""

from __future__ import annotations

from cases import Case
from queues import asks, gets, queue
from story import Story


def case() -> Case:
    story = Story()
    queue(story, "q", 2, cohort="c")
    queue(story, "kept", 4, cohort="c")
    group = story._now["ClusterQueue", "kept"]["spec"]["resourceGroups"][0]
    story.change(-4, "ClusterQueue", "kept", lambda _: group["flavors"][0]["resources"][0].update(lendingLimit="1"))
    queue(story, "shut", 4, stopPolicy="Hold")
    asks(story, 10, "a", 2)
    gets(story, 11, "a", 2)
    asks(story, 20, "b", 2)
    asks(story, 30, "d", 4, of="kept")
    gets(story, 31, "d", 4, of="kept")
    asks(story, 40, "e", 4, of="shut")
    return Case(story.build(), ("4 workloads, 2 admitted",), (), {"waiting_s_max": 5}, 4)
