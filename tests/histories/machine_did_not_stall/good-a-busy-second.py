"""Two seconds of waiting are no crowd, though they come again and again."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.mark(0, "load_start")
    for second in range(60):
        waits = 0.9 if second % 8 < 2 else 0.1
        story.sample(second * story.time_scale, "machine", "run_queue_wait_ratio", waits, process="locust")
    return Case(
        story.build(), ("no process waited for a processor for more than 42%",), numbers={"stalls_over_limit": 0}
    )
