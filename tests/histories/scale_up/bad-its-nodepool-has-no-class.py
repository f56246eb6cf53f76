"""No node was decided for the pod that found no room: the NodeClass of its NodePool is not there."""

from __future__ import annotations

from cases import Case
from no_room import one_replica, second_never_served
from nodepools import nodepool


def case() -> Case:
    story = one_replica()
    nodepool(story, "gpu", "WhenEmpty", [])
    missing = {"type": "NodeClassReady", "status": "False", "reason": "NodeClassNotFound"}
    story.change(-4, "NodePool", "gpu", lambda p: p.update(status={"conditions": [missing]}))
    return second_never_served(story)
