"""KAI takes what is left of a gang below its minMember off after its staleness grace (60 s by default)."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.put(290, "PodGroup", "pg-train", {"spec": {"minMember": 3, "queue": "research"}})
    for n in range(3):
        story.pod(f"train-{n}", "on-demand-1", 300, bound_s=301, app="train",
                  annotations={"pod-group-name": "pg-train"})  # fmt: skip
        story.remove(360 if n == 0 else 425, "Pod", f"train-{n}")
    story.event(420, "train-1", "StaleJob", "Job is stale. 2 pods are active, minMember is 3")
    says = ("1 gang put to the test", "whole again within 65.0 s")
    return Case(story.build(), says, (), {"atomicity_s_max": 20, "whole_again_s_max": 90}, 1)
