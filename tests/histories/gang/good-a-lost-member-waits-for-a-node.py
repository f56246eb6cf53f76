"""A member went with its node, and the one in its place waited for a new node: binding had nothing to do with it."""

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
    story.pod("gang-a-2", "on-demand-2", 321, refused_s=321.5, bound_s=375, app="gang-a", group="gang-a")
    story.end(330, "gang-a-0")
    numbers = {"partial_after_loss_s_longest": 55.0, "partial_s_longest": 55.0}
    spec = {"atomicity_s_max": 20, "whole_again_s_max": 120}
    return Case(story.build(), ("for longer than 0.0 s", "whole again within 55.0 s"), (), spec, 1, numbers)
