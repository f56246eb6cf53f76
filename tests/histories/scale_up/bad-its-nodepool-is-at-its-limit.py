"""No node was decided for the pod that found no room: its NodePool has all the GPUs that its limits allow."""

from __future__ import annotations

from cases import Case
from no_room import one_replica, second_never_served
from nodepools import nodepool


def case() -> Case:
    story = one_replica()
    nodepool(story, "gpu", "WhenEmpty", [])
    story.change(-4, "NodePool", "gpu", lambda p: p["spec"].update(limits={"nvidia.com/gpu": "2"}))
    story.change(90, "NodePool", "gpu", lambda p: p.update(status={"resources": {"nvidia.com/gpu": "2"}}))
    return second_never_served(story)
