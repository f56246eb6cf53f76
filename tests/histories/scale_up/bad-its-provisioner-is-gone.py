"""Karpenter's process has ended when a replica finds no room; it orders the node once it is back, too late."""

from __future__ import annotations

from cases import Case
from no_room import one_replica

from harness.history.tables import FaultStage


def case() -> Case:
    story = one_replica()
    for at_s, stage in ((60, FaultStage.INJECTED), (300, FaultStage.ENDED)):
        story.fault(at_s, stage, "karpenter-kwok", fault="component_stopped", fault_id="component_stopped-1")
    story.mark(80, "load_step")
    story.scale(100, 2)
    story.pod("llm-b", "on-demand-2", 101, refused_s=102, bound_s=340, running_s=350, ready_s=370)
    story.claim("on-demand-2", 303, 305)
    story.node("on-demand-2", 320, 330)
    story.request(375, "llm-b", ttft_ms=100.0)
    says = ("1 of 1 added replica not in time", "llm-b served only after 296.0 s")
    return Case(story.build(), says, (), {"ready_s_max": 200}, 1, {"added_served": 1})
