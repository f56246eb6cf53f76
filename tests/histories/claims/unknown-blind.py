"""A pod seems to stay on its tainted GPU, but the recorder saw no pods at that time."""

from __future__ import annotations

from bodies import claim_body, slice_body
from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("dra-1")
    story.put(-5, "ResourceSlice", "dra-1", slice_body("dra-1", 2), None)
    story.pod("train-0", "dra-1", 10, bound_s=11, app="train")
    story.put(10.5, "ResourceClaim", "train-0", claim_body("dra-1", "train-0", 0))
    story.change(100, "ResourceSlice", "dra-1", lambda s: s.update(slice_body("dra-1", 2, (0,))))
    story.gap(105, 300, "Pod")
    return Case(story.build(), ("the recorder was blind for Pod",))
