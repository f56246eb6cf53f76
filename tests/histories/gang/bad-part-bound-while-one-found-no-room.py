"""Three of four took GPUs while the fourth found no room: less than replacing a lost member may take."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.group("gang-b", 4, 300)
    for n in range(3):
        story.pod(f"gang-b-{n}", "on-demand-1", 300.5, bound_s=301, app="gang-b", group="gang-b")
    story.pod("gang-b-3", "on-demand-2", 300.5, refused_s=301, bound_s=356, app="gang-b", group="gang-b")
    spec = {"atomicity_s_max": 20, "whole_again_s_max": 120}
    return Case(story.build(), ("gang-b held 3 of the 4 members it needs for 55.0 s", "limit 20 s"), (), spec, 1)
