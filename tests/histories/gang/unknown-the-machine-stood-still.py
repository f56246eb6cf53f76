"""The second member bound late only because nothing on the machine moved in between."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.group("gang-b", 2, 300)
    story.pod("gang-b-0", "on-demand-1", 300.5, refused_s=301, bound_s=320, app="gang-b", group="gang-b")
    story.pod("gang-b-1", "on-demand-1", 300.5, refused_s=301, bound_s=345, app="gang-b", group="gang-b")
    story.stall(344.9, 2.4)
    return Case(story.build(), ("the machine stood still",), (), {"atomicity_s_max": 20}, 1)
