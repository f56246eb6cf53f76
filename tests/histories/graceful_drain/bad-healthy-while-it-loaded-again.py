"""A pod comes again under its name, is Ready at once, and what it is asked waits in vain until its model has loaded."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import Outcome


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.pod("llm-0", "on-demand-1")
    story.request(150, "llm-0")
    story.evict(200, "llm-0")
    story.end(215, "llm-0")
    story.pod("llm-0", "on-demand-1", 220, running_s=225, ready_s=230)
    story.request(300, "llm-0", Outcome.STALLED, lasts_s=20, first_token_ns=None, last_token_ns=None)
    story.request(328, "llm-0", lasts_s=10)
    says = ("1 its pod was called Ready before it served (request 1; llm-0 on on-demand-1)",)
    return Case(story.build(), says, ("requests:1",), {}, 0)
