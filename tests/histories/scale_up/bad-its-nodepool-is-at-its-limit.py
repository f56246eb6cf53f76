"""No node was decided for the pod that found no room: its NodePool has all the GPUs that its limits allow."""

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
    story.change(-4, "NodePool", "gpu", lambda p: p["spec"].update(limits={"nvidia.com/gpu": "2"}))
    story.change(90, "NodePool", "gpu", lambda p: p.update(status={"resources": {"nvidia.com/gpu": "2"}}))
    story.mark(80, "load_step")
    story.scale(100, 2)
    story.pod("llm-b", None, 101, refused_s=102)
    story.mark(599, "end")
    story.event(599, "llm-b", "FailedScheduling", "no instance type met all requirements")
    return Case(
        story.build(), ("llm-b never served", "cloud capacity"), (), {"ready_s_max": 200}, 1, {"added_served": 0}
    )
