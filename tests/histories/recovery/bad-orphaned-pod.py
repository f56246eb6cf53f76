"""A pod is still bound to the node that is gone."""

from __future__ import annotations

from cases import Case
from drains import drained_at_200


def case() -> Case:
    story = drained_at_200()
    story.pod("llm-c", "on-demand-1", 202.5, running_s=205, ready_s=230)
    story.pod("job-1", "spot-1", app="job")
    story.node_gone("spot-1", 260)
    story.node("other", 590)
    says = ("Pod job-1 is bound to spot-1, which is gone",)
    return Case(story.build(), says, ("objects:6",), {}, 1, {"left_over": 1})
