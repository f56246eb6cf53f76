"""The replacement never becomes ready."""

from __future__ import annotations

from cases import Case
from drains import drained_at_200


def case() -> Case:
    story = drained_at_200()
    story.pod("llm-c", "on-demand-1", 202.5, running_s=205)
    story.node_gone("spot-1", 260)
    story.node("other", 590)
    says = ("not steady for 340.0 s", "1 of 2 wanted replicas were ready")
    return Case(story.build(), says, (), {}, 1, {"steady_s": None})
