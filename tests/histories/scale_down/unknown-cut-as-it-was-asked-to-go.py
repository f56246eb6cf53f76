"""A stream is cut a fifth of a clock second before its pod is seen to be scaled away: either may have come first."""

from __future__ import annotations

from cases import Case
from scaled import one_replica

from harness.history.tables import Outcome


def case() -> Case:
    story = one_replica()
    story.scale(100, 2)
    story.pod("llm-b", "on-demand-1", 100.5, running_s=105, ready_s=120, grace_s=30)
    story.scale(300, 1)
    story.request(295, "llm-b", Outcome.RESET_MID_STREAM, lasts_s=3.5)
    story.evict(300.5, "llm-b", reason=None)
    story.end(330.5, "llm-b", 137)
    return Case(story.build(), ("in the very moment in which llm-b was scaled away",), numbers={"streams_lost": 0})
