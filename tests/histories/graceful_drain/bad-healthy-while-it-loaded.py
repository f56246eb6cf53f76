"""A pod is Ready at once, and what it is asked waits in vain until its model has loaded, half a minute later."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import Outcome


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.pod("llm-a", "on-demand-1")
    for at_s in (300, 305):
        story.request(at_s, "llm-a", Outcome.STALLED, lasts_s=20, first_token_ns=None, last_token_ns=None)
    story.request(328, "llm-a", lasts_s=10)
    says = ("2 its pod was called Ready before it served (requests 0 and 1; llm-a on on-demand-1)",)
    return Case(story.build(), says, ("requests:0", "requests:1"), {"streams_lost_max": 0}, 0)
