"""Two jobs are admitted for whom there is quota for one."""

from __future__ import annotations

from cases import Case
from queues import asks, gets, queue
from story import Story


def case() -> Case:
    story = Story()
    queue(story, "q", 4)
    for job in ("a", "b"):
        asks(story, 10, job, 4)
        gets(story, 11, job, 4)
    return Case(story.build(), ("ClusterQueue q gave 8 GPUs of 4 for",), (), {}, 2, {"over_quota": 1})
