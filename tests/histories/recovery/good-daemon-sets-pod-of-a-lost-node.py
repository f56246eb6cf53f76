"""Only the pod of a DaemonSet is still bound to the node that is gone: it had no other place, and holds nothing."""

from __future__ import annotations

from cases import Case
from drains import drained_at_200


def case() -> Case:
    story = drained_at_200()
    story.pod("llm-c", "on-demand-1", 202.5, running_s=205, ready_s=230)
    story.pod("plugin-1", "spot-1", app="plugin")
    owner = {"kind": "DaemonSet", "name": "plugin", "uid": "plugin", "controller": True}
    story.change(-1, "Pod", "plugin-1", lambda p: p["metadata"].update(ownerReferences=[owner]))
    story.node_gone("spot-1", 260)
    story.node("other", 590)
    return Case(story.build(), ("nothing left over",), numbers={"left_over": 0})
