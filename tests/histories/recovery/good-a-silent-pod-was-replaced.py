"""A pod that was Ready and gave no token is replaced after the fault: steady once the other one is ready."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import FaultStage, Outcome


def case() -> Case:
    story = Story()
    for node in ("spot-1", "on-demand-1"):
        story.node(node)
    story.deployment(2)
    story.pod("llm-a", "spot-1")
    story.pod("llm-b", "on-demand-1")
    for at_s, stage in ((-1, "planned"), (200, "injected"), (201, "observed"), (260, "ended"), (590, "healed")):
        story.fault(at_s, FaultStage(stage), "spot-1")
    story.traffic(100, 590, 4, ("llm-b",))
    for at_s in (210, 220, 230):
        story.request(at_s, "llm-a", Outcome.STALLED, lasts_s=90, last_token_ns=story.ns(232))
    story.evict(270, "llm-a")
    story.end(275, "llm-a")
    story.pod("llm-c", "on-demand-1", 270.5, running_s=275, ready_s=300)
    story.node("other", 590)
    return Case(story.build(), ("steady 40.0 s", "nothing left over"), (), {}, 1, {"steady_s": 40.0})
