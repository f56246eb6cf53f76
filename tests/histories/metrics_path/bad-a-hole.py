"""For two minutes nothing can be read."""

from __future__ import annotations

from cases import Case
from queue_read import one_replica


def case() -> Case:
    story = one_replica()

    for at_s in [*range(0, 200, 10), *range(320, 600, 10)]:
        story.waiting(at_s, llm_a=0.0)
    says = ("1 hole in it, the longest 130.0 s",)
    return Case(
        story.build(),
        says,
        ("samples:custom.metrics/vllm_num_requests_waiting",),
        {},
        1,
        {"holes": 1, "hole_s_longest": 130.0},
    )
