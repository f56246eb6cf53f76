"""A gang is deleted whole and made again under its name; of the second a part is bound, and stays alone."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    for at_s in (10, 200):
        story.group("gang-a", 2, at_s)
        story.pod("gang-a-0", "on-demand-1", at_s + 0.5, bound_s=at_s + 10, app="gang-a", group="gang-a")
        second = "on-demand-1" if at_s == 10 else None
        story.pod("gang-a-1", second, at_s + 0.5, refused_s=at_s + 1, bound_s=at_s + 10, app="gang-a", group="gang-a")
        if at_s == 10:
            for n in range(2):
                story.evict(100, f"gang-a-{n}", None)
                story.end(102, f"gang-a-{n}")
            story.remove(105, "PodGroup", "gang-a")
    return Case(story.build(), ("gang-a held 1 of the 2", "390.0 s"), (), {"atomicity_s_max": 60}, 2)
