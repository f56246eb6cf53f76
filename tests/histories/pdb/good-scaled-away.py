"""A pod that its ReplicaSet scales away is under no budget, even on a node that is being drained."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.deployment(3)
    story.budget(2, 1)
    for name in "abc":
        story.pod(f"llm-{name}", "on-demand-1")
    story.taint("on-demand-1", 300)
    story.evict(301, "llm-a")
    story.end(310, "llm-a")
    story.scale(400, 1)
    story.evict(400.2, "llm-b", None)
    return Case(story.build(), ("1 voluntary disruption",), (), {}, 1, {"voluntary": 1, "deleted_past_eviction": 0})
