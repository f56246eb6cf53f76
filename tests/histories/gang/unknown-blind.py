"""A gang seemed partly bound, but over a gap of the recording."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.group("gang-b", 2, 300)
    story.pod("gang-b-0", "on-demand-1", 300.5, bound_s=301, app="gang-b", group="gang-b")
    story.pod("gang-b-1", None, 300.5, refused_s=301, app="gang-b", group="gang-b")
    story.gap(310, 450, "Pod")
    story.change(451, "Pod", "gang-b-1", lambda p: p["spec"].update(nodeName="on-demand-1"))
    return Case(story.build(), ("recorder was blind",), (), {"atomicity_s_max": 60}, 1)
