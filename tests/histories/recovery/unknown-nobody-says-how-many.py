"""Two pods of a LeaderWorkerSet went for good: no Deployment says how many there should be, and two there were."""

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
    for pod in ("llm-0", "llm-1"):
        story.evict(200, pod)
        story.end(210, pod)
    story.node("other", 590)
    says = ("0 pods were ready, of the 2 that were so when the first fault struck", "nothing recorded says how many")
    return Case(story.build(), says, ("faults:3",), {}, 1, {})
