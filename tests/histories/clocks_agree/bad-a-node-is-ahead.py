"""A kubelet stamps its heartbeats five seconds into the future."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("fast-1", at_s=100)
    story.heartbeat(200, "fast-1", ahead_s=5)
    return Case(story.build(), ("1 clock of 2", "node fast-1 5.0 s ahead"), evidence=("objects:1",))
