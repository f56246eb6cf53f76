"""The metric was 0 all the time, and rightly so."""

from __future__ import annotations

from cases import Case
from queue_read import one_replica


def case() -> Case:
    story = one_replica()

    story.traffic(10, 500, 5, ("llm-a",))
    for at_s in range(0, 600, 10):
        story.waiting(at_s, llm_a=0.0)
    says = ("requests never waited for long enough",)
    return Case(story.build(), says, (), {}, 0, {})
