"""Nothing was made meanwhile, and what the API server says is minutes ago: one quick answer is enough to know."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.server_time(0, ahead_s=-120)
    return Case(story.build(), ("the API server 119.0 s behind",), evidence=("marks:0",))
