"""A stream whose answer had begun is cut while a pod that was scaled away ends, and it names no pod."""

from __future__ import annotations

from cases import Case
from scaled import one_replica

from harness.history.tables import Outcome


def case() -> Case:
    story = one_replica()
    story.scale(100, 2)
    story.pod("llm-b", "on-demand-1", 100.5, running_s=105, ready_s=120, grace_s=30)
    story.scale(300, 1)
    story.request(200, "llm-a", Outcome.OK)
    story.request(295, None, Outcome.RESET_MID_STREAM, lasts_s=35.5, first_token_ns=story.ns(296))
    story.evict(300.5, "llm-b", reason=None)
    story.end(330.6, "llm-b", 137)
    says = ("request 1 was cut while llm-b, which was scaled away, ended, and names no pod",)
    return Case(story.build(), says, numbers={"streams_lost": 0})
