"""A pod was evicted, and that was all: steady from when another was ready, and not only after the heal of nothing."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import FaultStage


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.deployment(2)
    story.pod("llm-a", "on-demand-1")
    story.pod("llm-b", "on-demand-1")
    for at_s, stage in ((-1, "planned"), (200, "injected"), (201, "observed"), (589, "healing"), (590, "healed")):
        detail = "nothing_left" if stage == "healing" else ""
        story.fault(at_s, FaultStage(stage), "inference/llm-a", fault_id="pod_loss-1", fault="pod_loss", detail=detail)
    story.evict(200, "llm-a")
    story.end(210, "llm-a")
    story.pod("llm-c", "on-demand-1", 200.5, running_s=203, ready_s=241)
    story.node("other", 590)
    return Case(story.build(), ("steady 40.0 s", "nothing left over"), ("faults:2",), {}, 1, {"steady_s": 40.0})
