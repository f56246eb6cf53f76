"""A trainer that the run itself brought waited for its node already when the fault struck, and never got it."""

from __future__ import annotations

from cases import Case
from drains import drained_at_200, trainer_waits


def case() -> Case:
    story = drained_at_200(planned_s=199)
    trainer_waits(story, 60)
    story.pod("llm-c", "on-demand-1", 202.5, running_s=205, ready_s=230)
    story.node_gone("spot-1", 250)
    story.node("other", 590)
    return Case(story.build(), ("not steady for", "train-0 found no room"), (), {"steady_s_max": 100}, 1, {})
