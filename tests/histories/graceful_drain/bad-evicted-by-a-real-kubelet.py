"""A kubelet short of memory kills its pods, and tells of it two seconds of the clock later."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import Outcome


def case() -> Case:
    story = Story(time_scale=8.0, info={"target": "node"})
    story.node("spot-1")
    story.pod("llm-a", "spot-1")
    story.request(300, "llm-a", Outcome.RESET_MID_STREAM, lasts_s=20)
    story.request(280, "llm-a", Outcome.RESET_MID_STREAM, lasts_s=10)
    story.evicted_by_its_kubelet(336, "llm-a")
    return Case(
        story.build(),
        (
            "1 unexplained (request 1;",  # long before: whatever cut it, the eviction did not
            "1 its container ended (request 0; llm-a on spot-1)",
        ),
        ("requests:1", "requests:0"),
    )
