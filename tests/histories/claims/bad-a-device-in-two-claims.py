"""Two schedulers that know nothing of each other give one GPU to two claims."""

from __future__ import annotations

from bodies import claim_body, slice_body
from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("dra-1")
    story.put(-5, "ResourceSlice", "dra-1", slice_body("dra-1", 2), None)
    for n in range(2):
        story.pod(f"train-{n}", "dra-1", 10 + n, bound_s=12 + n, app="train")
        story.put(11 + n, "ResourceClaim", f"train-{n}", claim_body("dra-1", f"train-{n}", 1))
    says = ("1 device in two claims at once (first: gpu-1 of dra-1 in train-0 and train-1)",)
    return Case(story.build(), says, numbers={"given_twice": 1})
