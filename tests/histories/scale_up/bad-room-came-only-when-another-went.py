"""A NodePool at its limit has no node for the pod that found no room; it came to where another had gone at last."""

from __future__ import annotations

from cases import Case
from no_room import one_replica
from nodepools import nodepool


def case() -> Case:
    story = one_replica()
    nodepool(story, "gpu", "WhenEmpty", [])
    story.change(-4, "NodePool", "gpu", lambda p: p["spec"].update(limits={"nvidia.com/gpu": "2"}))
    story.change(90, "NodePool", "gpu", lambda p: p.update(status={"resources": {"nvidia.com/gpu": "2"}}))
    story.mark(80, "load_step")
    story.scale(100, 2)
    story.pod("llm-b", "on-demand-1", 101, refused_s=102, bound_s=311, running_s=320, ready_s=340)
    story.evict(300, "llm-a", None)
    story.end(310, "llm-a")
    story.request(345, "llm-b", ttft_ms=100.0)
    says = ("1 of 1 added replica not in time", "llm-b served only after 266.0 s")
    return Case(story.build(), says, (), {"ready_s_max": 200}, 1, {"added_served": 1})
