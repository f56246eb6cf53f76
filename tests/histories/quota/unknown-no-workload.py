"""Nobody asked the queue."""

from __future__ import annotations

from cases import Case
from queues import queue
from story import Story


def case() -> Case:
    story = Story()
    queue(story, "q", 4)
    return Case(story.build(), ("no workload that asks for GPUs was in a queue",), (), {}, 0)
