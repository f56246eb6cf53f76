"""A pod falls silent though it is called Ready and is replaced by another of its name, which serves."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import Outcome


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    for pod in ("llm-0", "llm-1"):
        story.pod(pod, "on-demand-1")
    story.traffic(100, 590, 4, ("llm-1",))
    silent = [
        story.request(at_s, "llm-0", Outcome.DEADLINE, lasts_s=180, last_token_ns=None, first_token_ns=None)
        for at_s in (200, 205)
    ]
    story.evict(260, "llm-0")
    story.end(275, "llm-0")
    story.pod("llm-0", "on-demand-1", 276, running_s=280, ready_s=300)
    story.traffic(301, 590, 4, ("llm-0",))
    says = (f"2 its server fell silent, though its pod was called Ready (requests {silent[0]} and {silent[1]};",)
    return Case(story.build(), says, (), {}, None, {"streams_lost": 2, "streams_lost_unexplained": 0})
