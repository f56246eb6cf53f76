"""A router goes on sending to a pod whose endpoint is closed; another came under its name and served."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import Outcome


def case() -> Case:
    story = Story()
    story.node("spot-1")
    story.pod("llm-0", "spot-1")
    story.request(318, "llm-0", lasts_s=8)
    story.evict(320, "llm-0")
    refused = {"status": 500, "first_token_ns": None, "reason": "500 shutting down"}
    story.request(335, "llm-0", Outcome.HTTP_5XX, lasts_s=0.5, **refused)
    story.end(340, "llm-0")
    story.pod("llm-0", "spot-1", 342, running_s=345, ready_s=360)
    story.request(362, "llm-0")
    says = ("1 sent to a pod that was already going (request 1;",)
    return Case(story.build(), says, ("requests:1", "requests:1"), {}, 1, {"routed_to_terminating": 1})
