"""One of two GPUs is tainted by its driver: its pod is asked to go a little later, the other one stays."""

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
    story.change(100, "ResourceSlice", "dra-1", lambda s: s.update(slice_body("dra-1", 2, (0,))))
    story.evict(110, "train-0", "DeletionByDeviceTaintManager")
    says = ("2 devices given to claims", "1 pod left a tainted device, within 10.0 s")
    return Case(story.build(), says, spec={"leave_s_max": 60}, exercised=3, numbers={"pods_struck": 1})
