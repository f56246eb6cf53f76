"""Nobody makes the head of a Ray cluster anew: its workers hold their GPUs and nothing runs on them."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    groups = [{"groupName": "gpu", "replicas": 2, "minReplicas": 2}]
    story.put(-5, "RayCluster", "ray", {"spec": {"headGroupSpec": {}, "workerGroupSpecs": groups}})
    for name in ("ray-head", "ray-gpu-1", "ray-gpu-2"):
        story.pod(name, "on-demand-1", app="train", labels={"ray.io/cluster": "ray"})
    story.evict(100, "ray-head")
    story.end(101, "ray-head")
    says = ("ray held 2 of the 3 members it needs for",)
    return Case(story.build(), says, (), {"atomicity_s_max": 60})
