"""A router goes on sending to a pod that is shutting down, which answers 500: nothing was aborted on SIGTERM."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import Outcome


def case() -> Case:
    story = Story()
    story.node("spot-1")
    story.pod("llm-a", "spot-1")
    story.request(318, "llm-a", lasts_s=8)
    story.evict(320, "llm-a")
    for at_s in (331, 335):
        refused = {"status": 500, "first_token_ns": None, "reason": "500 shutting down"}
        story.request(at_s, "llm-a", Outcome.HTTP_5XX, lasts_s=0.5, **refused)
    story.end(340, "llm-a")
    return Case(story.build(), ("2 sent to a pod that was already going (requests 1 and 2;",), ("requests:1",), {}, 1)
