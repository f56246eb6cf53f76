"""The coscheduling plugin's PodGroup names its minimum, its pods a label; all wait until all have room."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.put(290, "PodGroup", "train", {"spec": {"minMember": 3, "scheduleTimeoutSeconds": 30}})
    for n in range(3):
        story.pod(f"train-{n}", "on-demand-1", 300, refused_s=301, bound_s=400 + n, app="train",
                  labels={"scheduling.x-k8s.io/pod-group": "train"})  # fmt: skip
    says = ("1 gang put to the test (1 met a shortage, 0 lost a member)",)
    return Case(story.build(), says, (), {"atomicity_s_max": 20}, 1)
