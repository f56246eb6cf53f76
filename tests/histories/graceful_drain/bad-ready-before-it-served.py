"""Two pods are Ready but refuse connections: 502 from the gateway, in one moment, with no stream cut by it."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import Outcome


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    for name in ("llm-a", "llm-b"):
        story.pod(name, "on-demand-1")
        refused = {"status": 502, "first_token_ns": None, "reason": "502 connection refused"}
        story.request(300, name, Outcome.HTTP_5XX, lasts_s=0.1, **refused)
    says = ("2 answered with an error though its pod was in service",)
    return Case(story.build(), says, ("requests:0", "requests:1"), {"streams_lost_max": 0}, 0)
