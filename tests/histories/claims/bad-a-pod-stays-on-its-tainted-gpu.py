"""A rule taints one GPU of two, and its pod is never asked to go: nobody runs the eviction."""

from __future__ import annotations

from bodies import claim_body, slice_body
from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("dra-1")
    story.put(-5, "ResourceSlice", "dra-1", slice_body("dra-1", 2), None)
    for n in range(2):
        story.pod(f"train-{n}", "dra-1", 10, bound_s=11, app="train")
        story.put(10.5, "ResourceClaim", f"train-{n}", claim_body("dra-1", f"train-{n}", n))
    taint = {"key": "broken", "effect": "NoExecute"}
    chosen = {"driver": "gpu.nvidia.com", "pool": "dra-1", "device": "gpu-1"}
    story.put(100, "DeviceTaintRule", "broken", {"spec": {"deviceSelector": chosen, "taint": taint}}, None)
    says = ("1 pod stayed on a tainted device (first: train-1 on gpu-1 of dra-1 for 500.0 s",)
    return Case(story.build(), says, spec={"leave_s_max": 60}, numbers={"pods_stayed": 1})
