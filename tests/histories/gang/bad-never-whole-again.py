"""A member was lost, and none came in its place until the recording's end."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("spot-1")
    story.node("on-demand-1")
    story.group("gang-a", 2)
    story.pod("gang-a-0", "spot-1", app="gang-a", group="gang-a")
    story.pod("gang-a-1", "on-demand-1", app="gang-a", group="gang-a")
    story.evict(320, "gang-a-0")
    story.node("late", 590)
    return Case(story.build(), ("gang-a held 1 of the 2", "280.0 s"), ("objects:5",), {"atomicity_s_max": 60}, 1)
