"""A claim has a GPU of a pool that no ResourceSlice in the recording has: nobody knows whether it was tainted."""

from __future__ import annotations

from bodies import claim_body
from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("dra-1")
    story.pod("train-0", "dra-1", 10, bound_s=11, app="train")
    story.put(10.5, "ResourceClaim", "train-0", claim_body("dra-1", "train-0", 0))
    return Case(story.build(), ("no ResourceSlice of dra-1 (", "so nobody knows its taints"))
