"""No replica is left on a node that the cloud may not take back."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story(time_scale=1)
    story.node("spot-1", pool="spot")
    story.node("on-demand-1")
    story.deployment(2)
    story.pod("llm-a", "on-demand-1")
    story.pod("llm-b", "spot-1")
    story.evict(300, "llm-a")
    story.end(310, "llm-a")
    says = ("only 0 ready replicas off spot (at least 1 wanted)",)
    return Case(story.build(), says, (), {"protected_ready_min": 1}, 1, {"spot_ratio": 0.5})
