"""The machine stood still and was crowded while the cluster came up, before the load began, and never after."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    for second in range(60):
        waits = 0.9 if second < 30 else 0.1
        story.sample(second * story.time_scale, "machine", "run_queue_wait_ratio", waits, process="harness.cli")
    story.stall(20 * story.time_scale, 0.7)
    story.mark(31 * story.time_scale, "load_start")
    return Case(story.build(), ("the longest stall of the machine was 0.00 s", "more than 10% of 5 s"))
