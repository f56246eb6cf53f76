"""What waited on a pod that was asked to go was refused with 429: that is no stream that ended whole."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import Outcome


def case() -> Case:
    story = Story()
    story.node("spot-1")
    story.pod("llm-a", "spot-1")
    story.request(195, "llm-a", Outcome.HTTP_429, lasts_s=30, status=429, first_token_ns=None, last_token_ns=None)
    story.evict(202, "llm-a")
    story.end(250, "llm-a")
    return Case(story.build(), ("draining was not put to the test",), (), {}, 0)
