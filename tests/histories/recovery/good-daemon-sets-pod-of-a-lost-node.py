"""Only the pod of a DaemonSet is still bound to the node that is gone: it had no other place, and holds nothing."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import FaultStage


def case() -> Case:
    story = Story()
    for node in ("spot-1", "on-demand-1"):
        story.node(node)
    story.deployment(2)
    story.pod("llm-a", "spot-1")
    story.pod("llm-b", "on-demand-1")
    for at_s, stage in ((-1, "planned"), (200, "injected"), (201, "observed"), (260, "ended"), (590, "healed")):
        story.fault(at_s, FaultStage(stage), "spot-1")
    story.taint("spot-1", 201)
    story.evict(202, "llm-a")
    story.end(215, "llm-a")

    story.pod("llm-c", "on-demand-1", 202.5, running_s=205, ready_s=230)
    story.pod("plugin-1", "spot-1", app="plugin")
    owner = {"kind": "DaemonSet", "name": "plugin", "uid": "plugin", "controller": True}
    story.change(-1, "Pod", "plugin-1", lambda p: p["metadata"].update(ownerReferences=[owner]))
    story.node_gone("spot-1", 260)
    story.node("other", 590)
    return Case(story.build(), ("nothing left over",), numbers={"left_over": 0})
