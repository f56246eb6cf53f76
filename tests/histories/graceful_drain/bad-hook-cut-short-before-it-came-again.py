"""A pod of a LeaderWorkerSet ended before its preStop hook was over, and came again under its name."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import FaultStage


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    for pod in ("llm-0", "llm-1"):
        story.pod(pod, "on-demand-1", pre_stop_s=60)
    story.traffic(1, 590, 4, ("llm-1",))
    for at_s, stage in ((199, "planned"), (200, "injected"), (201, "observed"), (230, "ended")):
        story.fault(at_s, FaultStage(stage), "inference/llm-0", fault_id="pod_loss-1", fault="pod_loss")
    story.request(195, "llm-0", lasts_s=10)
    story.evict(200, "llm-0")
    story.end(210, "llm-0")
    story.pod("llm-0", "on-demand-1", 211, running_s=215, ready_s=250)
    story.node("other", 590)
    says = ("1 pod ended before the preStop hook of 60 s was over: llm-0 10.0 s after it was asked to go",)
    return Case(story.build(), says, numbers={"pre_stop_cut_short": 1, "streams_at_risk": 1, "pods_left": 1})
