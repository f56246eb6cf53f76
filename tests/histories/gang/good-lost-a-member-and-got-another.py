"""A member was evicted with its node, and its replacement bound within the limit."""

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
    story.pod("gang-a-2", "on-demand-1", 321, bound_s=325, app="gang-a", group="gang-a")
    story.end(330, "gang-a-0")
    numbers = {"members_lost": 1, "partial_s_longest": 5.0, "gpu_s_wasted": 5.0}
    return Case(story.build(), ("1 lost a member",), (), {"atomicity_s_max": 60}, 1, numbers)
