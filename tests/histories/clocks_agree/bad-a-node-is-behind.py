"""A kubelet stamps each of its heartbeats ten seconds into the past."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("slow-1", at_s=100)
    for at_s in (200, 250, 300):
        story.heartbeat(at_s, "slow-1", ahead_s=-10)
    return Case(story.build(), ("node slow-1 9.0 s behind",))
