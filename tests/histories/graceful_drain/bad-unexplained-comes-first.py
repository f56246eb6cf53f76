"""Nothing in the cluster explains one of the two cuts: it is lost all the same, and shown first."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import Outcome


def case() -> Case:
    story = Story()
    story.node("spot-1")
    story.node("on-demand-1")
    story.pod("llm-a", "spot-1")
    story.pod("llm-b", "on-demand-1")
    story.request(315, "llm-a", Outcome.RESET_MID_STREAM, lasts_s=18)
    story.request(400, "llm-b", Outcome.STALLED, lasts_s=60)
    story.evict(322, "llm-a")
    story.end(333.5, "llm-a", 143)
    return Case(
        story.build(),
        ("2 streams lost", "1 unexplained (request 1; llm-b on on-demand-1); 1 aborted on SIGTERM"),
        ("requests:1", "requests:0"),
        {},
        1,
        {"streams_lost_unexplained": 1},
    )
