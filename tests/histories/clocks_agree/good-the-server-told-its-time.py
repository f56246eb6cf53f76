"""All objects were there before, but the API server was asked for its time of day."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.server_time(0)
    story.server_time(500, ahead_s=-0.5, took_s=0.8)
    return Case(story.build(), ("the API server agree",), exercised=2, numbers={"off_s_max": 0.0})
