"""New objects and heartbeats are stamped as the recorder sees them."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1", at_s=100)
    story.heartbeat(200, "on-demand-1")
    return Case(story.build(), ("the API server and 1 node", "agree with the harness's within 2 s"), exercised=2)
