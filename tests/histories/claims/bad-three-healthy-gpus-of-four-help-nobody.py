"""A claim for all four GPUs of a machine: one is tainted, its pod leaves, and the next one finds three of them free."""

from __future__ import annotations

from bodies import UNSCHEDULABLE, claim_body, slice_body
from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("dra-1")
    story.put(-5, "ResourceSlice", "dra-1", slice_body("dra-1", 4), None)
    story.pod("train-0", "dra-1", 10, bound_s=11, app="train")
    story.put(10.5, "ResourceClaim", "train-0", claim_body("dra-1", "train-0", 0, 1, 2, 3))
    story.change(100, "ResourceSlice", "dra-1", lambda s: s.update(slice_body("dra-1", 4, (0,))))
    story.evict(101, "train-0", "DeletionByDeviceTaintManager")
    story.remove(110, "Pod", "train-0")
    story.remove(110, "ResourceClaim", "train-0")
    story.pod("train-1", None, 112, app="train")
    story.change(112, "Pod", "train-1", lambda p: p["spec"].update(resourceClaims=[{"name": "gpus"}]))
    story.change(113, "Pod", "train-1", lambda p: p["status"].update(conditions=[UNSCHEDULABLE]))
    says = ("train-1 found no devices for 487.0 s", "while 3 healthy devices of dra-1 stood free (limit 120 s)")
    return Case(story.build(), says, spec={"waiting_s_max": 120})
