"""The taint manager takes off a pod whose GPU nobody tainted."""

from __future__ import annotations

from bodies import claim_body, slice_body
from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("dra-1")
    story.put(-5, "ResourceSlice", "dra-1", slice_body("dra-1", 2), None)
    story.pod("train-1", "dra-1", 10, bound_s=11, app="train")
    story.put(10.5, "ResourceClaim", "train-1", claim_body("dra-1", "train-1", 1))
    story.change(100, "ResourceSlice", "dra-1", lambda s: s.update(slice_body("dra-1", 2, (0,))))
    target = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByDeviceTaintManager"}
    story.change(105, "Pod", "train-1", lambda p: p["status"]["conditions"].append(target))
    return Case(story.build(), ("1 pod taken off healthy devices (first: train-1)",))
