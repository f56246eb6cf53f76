"""The replacement still starts when the recording ends, a minute after the fault."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import FaultStage


def case() -> Case:
    story = Story()
    story.node("spot-1")
    story.deployment(1)
    story.pod("llm-a", "spot-1")
    for at_s, stage in ((-1, "planned"), (480, "injected"), (481, "observed"), (530, "ended")):
        story.fault(at_s, FaultStage(stage), "spot-1")
    story.evict(482, "llm-a")
    story.end(490, "llm-a")
    story.pod("llm-b", "spot-1", 483, running_s=500)
    says = ("0 of 1 wanted replicas were ready when the recording ended",)
    return Case(story.build(), says, (), {}, 1, {})
