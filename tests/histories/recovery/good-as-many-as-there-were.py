"""A pod of a LeaderWorkerSet went and came again under its name: as many are ready as there were."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import FaultStage


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    for pod in ("llm-0", "llm-1"):
        story.pod(pod, "on-demand-1")
    for at_s, stage in ((-1, "planned"), (200, "injected"), (201, "observed"), (230, "ended")):
        story.fault(at_s, FaultStage(stage), "on-demand-1")
    story.evict(200, "llm-0")
    story.end(210, "llm-0")
    story.pod("llm-0", "on-demand-1", 211, running_s=215, ready_s=250)
    story.node("other", 590)
    return Case(story.build(), ("steady 20.0 s", "nothing left over"), ("faults:3",), {}, 1, {"steady_s": 20.0})
