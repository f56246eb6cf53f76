"""Three GPUs free for a gang of four: none binds until a node comes, then all do."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.group("gang-b", 4, 300)
    for n in range(4):
        story.pod(f"gang-b-{n}", "on-demand-2", 300.5, refused_s=301, bound_s=360 + n, app="gang-b", group="gang-b")
    story.mark(599, "end")
    numbers = {"gangs": 1, "gangs_short": 1, "members_lost": 0, "partial_s_longest": 3.0, "gpu_s_wasted": 6.0}
    says = ("1 gang put to the test", "1 met a shortage", "for longer than 3.0 s")
    return Case(story.build(), says, ("objects:1",), {"atomicity_s_max": 60}, 1, numbers)
