"""A member was lost shortly before the recording's end, and none had come in its place yet."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.group("gang-a", 2)
    for n in range(2):
        story.pod(f"gang-a-{n}", "on-demand-1", app="gang-a", group="gang-a")
    story.evict(570, "gang-a-0")
    says = ("gang-a held 1 of the 2 members it needs when the recording ended, after 30.0 s",)
    return Case(story.build(), says, (), {"atomicity_s_max": 60}, 1)
