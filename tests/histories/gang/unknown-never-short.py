"""Every gang found room at once and kept its members."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.group("gang-a", 2)
    story.pod("gang-a-0", "on-demand-1", app="gang-a", group="gang-a")
    story.pod("gang-a-1", "on-demand-1", app="gang-a", group="gang-a")
    return Case(story.build(), ("1 gang, but none met a shortage",), (), {"atomicity_s_max": 60}, 0)
