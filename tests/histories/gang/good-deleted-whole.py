"""A gang that is deleted, members first, broke no promise and lost nobody."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.group("gang-b", 2, 300)
    for n in range(2):
        story.pod(f"gang-b-{n}", "on-demand-1", 300.5, refused_s=301, bound_s=320, app="gang-b", group="gang-b")
    story.evict(500, "gang-b-0", None)
    story.evict(504, "gang-b-1", None)
    story.remove(505, "PodGroup", "gang-b")
    numbers = {"members_lost": 0, "partial_s_longest": 0.0}
    return Case(story.build(), ("1 met a shortage, 0 lost a member",), (), {"atomicity_s_max": 60}, 1, numbers)
