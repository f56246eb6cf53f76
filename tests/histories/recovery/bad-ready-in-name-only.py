"""A pod is called Ready to the end and gives nobody a token since the fault: two of two are ready, one serves."""

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
    story.node("other", 590)
    says = ("llm-a was Ready and gave no token (3 requests waited in vain)",)
    return Case(story.build(), says, (), {}, 1, {"steady_s": None})
