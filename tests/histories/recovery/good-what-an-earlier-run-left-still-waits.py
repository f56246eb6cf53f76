"""A trainer that an earlier run brought, and left behind as it was killed, waits for its node all the time."""

from __future__ import annotations

from cases import Case
from drains import drained_at_200, trainer_waits


def case() -> Case:
    story = drained_at_200(planned_s=199)
    trainer_waits(story, -4)
    story.pod("llm-c", "on-demand-1", 202.5, running_s=205, ready_s=230)
    story.node_gone("spot-1", 250)
    story.node("other", 590)
    return Case(story.build(), ("steady 0.0 s", "nothing left over"), (), {}, 1, {"left_over": 0})
