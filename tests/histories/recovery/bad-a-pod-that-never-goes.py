"""A pod ended as it was asked to, and five minutes later its object is still there, terminating."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import FaultStage


def case() -> Case:
    story = Story()
    story.node("spot-1")
    story.node("on-demand-1")
    story.deployment(1)
    story.pod("llm-a", "on-demand-1")
    story.pod("llm-b", "on-demand-1")
    story.scale(105, 1)
    story.evict(105, "llm-b", None)
    story.change(120, "Pod", "llm-b", lambda p: p["status"].update(phase="Succeeded"))
    for at_s, stage in ((99, "planned"), (100, "injected"), (101, "observed"), (110, "ended")):
        story.fault(at_s, FaultStage(stage), "spot-1")
    says = ("1 thing left over: Pod llm-b is terminating beyond its grace",)
    return Case(story.build(), says, (), {"steady_s_max": 200}, 1, {"left_over": 1})
