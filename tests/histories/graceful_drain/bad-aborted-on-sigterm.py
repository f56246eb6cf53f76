"""The server cuts its streams when SIGTERM comes, right after the preStop hook."""

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
    story.request(300, "llm-b", lasts_s=60)
    story.request(315, "llm-a", Outcome.RESET_MID_STREAM, lasts_s=17.5)
    story.request(316, "llm-a", Outcome.TRUNCATED, lasts_s=16.5)
    story.request(317, "llm-a", lasts_s=8)
    story.evict(322, "llm-a")
    story.end(333, "llm-a", 143)
    return Case(
        story.build(),
        ("2 streams lost (allowed 0; 3 in flight", "2 aborted on SIGTERM (requests 1 and 2; llm-a on spot-1)"),
        ("requests:1", "requests:2"),
        {},
        3,
        {"streams_lost": 2, "streams_lost_at_risk": 2, "streams_whole": 1, "streams_lost_unexplained": 0},
    )
