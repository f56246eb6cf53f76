"""A pod of somebody else had found no room before the fault, and has none at the end."""

from __future__ import annotations

from bodies import UNSCHEDULABLE
from cases import Case
from drains import drained_at_200


def case() -> Case:
    story = drained_at_200()
    story.pod("train-0", app="train")
    story.change(-4, "Pod", "train-0", lambda pod: pod.update(status={"conditions": [dict(UNSCHEDULABLE)]}))
    story.pod("llm-c", "on-demand-1", 202.5, running_s=205, ready_s=230)
    story.node_gone("spot-1", 250)
    story.node("other", 590)
    return Case(story.build(), ("steady 0.0 s", "nothing left over"), (), {}, 1, {"left_over": 0})
