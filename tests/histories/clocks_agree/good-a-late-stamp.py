"""One heartbeat is seen ten seconds late; that proves nothing about the clock of its node."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("slow-1", at_s=100)
    story.heartbeat(200, "slow-1", ahead_s=-10)
    story.heartbeat(400, "slow-1")
    return Case(story.build(), ("1 node",), numbers={"off_s_max": 0.0})
