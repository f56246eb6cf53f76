"""Seven seconds in which the API server waited for a processor for more than half of the time."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.mark(0, "load_start")
    for second in range(60):
        waits = 0.8 if 20 <= second < 27 else 0.1
        story.sample(second * story.time_scale, "machine", "run_queue_wait_ratio", waits, process="kube-apiserver")
    says = ("crowded: kube-apiserver waited for a processor for 80% of 5 s", "not the system's")
    return Case(
        story.build(), says, ("samples:machine/run_queue_wait_ratio",), numbers={"run_queue_wait_ratio_max": 0.8}
    )
