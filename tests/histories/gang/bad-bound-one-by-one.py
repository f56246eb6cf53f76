"""Three of four members took GPUs and waited for the fourth for two minutes."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.group("gang-b", 4, 300)
    for n in range(3):
        story.pod(f"gang-b-{n}", "on-demand-1", 300.5, bound_s=301, app="gang-b", group="gang-b")
    story.pod("gang-b-3", "on-demand-2", 300.5, refused_s=301, bound_s=421, app="gang-b", group="gang-b")
    says = ("gang-b held 3 of the 4 members it needs for 120.0 s", "360.0 GPU-seconds in vain")
    numbers = {"partial_s_longest": 120.0, "gpu_s_wasted": 360.0}
    return Case(story.build(), says, ("objects:6",), {"atomicity_s_max": 60}, 1, numbers)
