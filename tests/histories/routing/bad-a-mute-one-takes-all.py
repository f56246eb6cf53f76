"""The endpoint picker goes on with what a replica said before its metrics failed, and gives it all."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import FaultStage


def case() -> Case:
    story = Story()
    story.pod("llm-a", "on-demand-1")
    story.pod("llm-b", "on-demand-1")
    story.fault(5, FaultStage.INJECTED, "inference/llm-a", fault="pod_metrics_down", fault_id="pod_metrics_down-1")
    for n in range(20):
        story.request(10 + n, "llm-a", lasts_s=60)
    story.info = {"versions": {"epp": "1.2.1"}}
    says = ("12 of 20 requests went to a replica that had 8 or more above another",)
    return Case(story.build(), says, ("requests:8",))
