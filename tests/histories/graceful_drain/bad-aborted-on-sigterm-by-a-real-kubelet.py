"""The server cuts its streams at SIGTERM; its kubelet counts grace and preStop of a scaled pod by the clock.

Taken for scenario seconds, the grace of 18 s would be over, and the server killed at its end.
"""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import Outcome


def case() -> Case:
    story = Story(time_scale=4.0, info={"target": "kind"})
    story.node("spot-1")
    story.node("on-demand-1")
    story.pod("llm-a", "spot-1", grace_s=18, pre_stop_s=3)
    story.pod("llm-b", "on-demand-1", grace_s=18, pre_stop_s=3)
    story.request(315, "llm-a", Outcome.RESET_MID_STREAM, lasts_s=29)
    story.request(316, "llm-a", Outcome.TRUNCATED, lasts_s=28)
    story.request(317, "llm-a", lasts_s=8)
    story.evict(322, "llm-a")
    story.end(344, "llm-a", 143)
    return Case(
        story.build(),
        (
            "2 streams lost (allowed 0; 3 in flight",
            "2 aborted on SIGTERM (requests 0 and 1; llm-a on spot-1)",
        ),
        ("requests:0", "requests:1"),
        {},
        3,
        {"streams_lost": 2, "streams_lost_at_risk": 2, "streams_whole": 1, "streams_lost_unexplained": 0},
    )
