"""How the histories of a recovery begin."""

from __future__ import annotations

from bodies import UNSCHEDULABLE, pod_body
from story import Story

from harness.history.lives import RUN_LABEL
from harness.history.tables import FaultStage


def drained_at_200(planned_s: float = -1) -> Story:
    """llm-a is evicted at second 202 and gone at 215; the fault on its node ends at 260. What comes after is the
    case's own."""
    story = Story()
    for node in ("spot-1", "on-demand-1"):
        story.node(node)
    story.deployment(2)
    story.pod("llm-a", "spot-1")
    story.pod("llm-b", "on-demand-1")
    for at_s, stage in ((planned_s, "planned"), (200, "injected"), (201, "observed"), (260, "ended"), (590, "healed")):
        story.fault(at_s, FaultStage(stage), "spot-1")
    story.taint("spot-1", 201)
    story.evict(202, "llm-a")
    story.end(215, "llm-a")
    return story


def trainer_waits(story: Story, at_s: float) -> None:
    """A Job that carries a run's label, and its pod, which nobody has room for."""
    story.put(at_s, "Job", "train", {"metadata": {"labels": {RUN_LABEL: "run-7"}}}, namespace="train")
    body = pod_body("train", None, 30, 0)
    body["metadata"]["ownerReferences"] = [{"uid": "uid-job-train", "controller": True, "kind": "Job"}]
    waits = {"status": {"phase": "Pending", "conditions": [dict(UNSCHEDULABLE)]}}
    story.put(at_s + 0.5, "Pod", "train-0", body | waits, namespace="train")


def two_of_a_set() -> Story:
    """Two pods that no Deployment counts; the fault on their node is from second 200 to 230."""
    story = Story()
    story.node("on-demand-1")
    for pod in ("llm-0", "llm-1"):
        story.pod(pod, "on-demand-1")
    for at_s, stage in ((-1, "planned"), (200, "injected"), (201, "observed"), (230, "ended")):
        story.fault(at_s, FaultStage(stage), "on-demand-1")
    return story
