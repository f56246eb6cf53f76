"""No node was decided for the pod that found no room: the NodeClass of its NodePool is not there."""

from __future__ import annotations

from cases import Case
from nodepools import nodepool
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1", gpus=1)
    story.deployment(1)
    story.pod("llm-a", "on-demand-1")
    nodepool(story, "gpu", "WhenEmpty", [])
    missing = {"type": "NodeClassReady", "status": "False", "reason": "NodeClassNotFound"}
    story.change(-4, "NodePool", "gpu", lambda p: p.update(status={"conditions": [missing]}))
    story.mark(80, "load_step")
    story.scale(100, 2)
    story.pod("llm-b", None, 101, refused_s=102)
    story.mark(599, "end")
    story.event(599, "llm-b", "FailedScheduling", "no instance type met all requirements")
    return Case(
        story.build(), ("llm-b never served", "cloud capacity"), (), {"ready_s_max": 200}, 1, {"added_served": 0}
    )
