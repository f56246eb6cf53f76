"""A person's rule taints every GPU of a node; the claim tolerates it, so nobody has to go."""

from __future__ import annotations

from bodies import claim_body, slice_body
from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("dra-1")
    story.put(-5, "ResourceSlice", "dra-1", slice_body("dra-1", 2), None)
    story.pod("train-0", "dra-1", 10, bound_s=11, app="train")
    tolerates = claim_body("dra-1", "train-0", 0, tolerations=({"key": "maintenance", "operator": "Exists"},))
    story.put(10.5, "ResourceClaim", "train-0", tolerates)
    taint = {"key": "maintenance", "effect": "NoExecute"}
    rule = {"spec": {"deviceSelector": {"pool": "dra-1"}, "taint": taint}}
    story.put(100, "DeviceTaintRule", "maintenance", rule, None)
    return Case(story.build(), ("none tainted",), numbers={"taints": 2, "pods_struck": 0})
