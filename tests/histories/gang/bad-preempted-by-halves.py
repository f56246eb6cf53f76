"""A gang of four is preempted member by member: two are taken, two stay and hold their GPUs for nothing."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.group("gang-low", 4)
    for n in range(4):
        story.pod(f"train-{n}", "on-demand-1", app="train", group="gang-low")
    for n in range(2):
        story.evict(200, f"train-{n}", "PreemptionByScheduler")
    says = ("gang-low held 2 of the 4 members it needs for 400.0 s",)
    return Case(story.build(), says, spec={"atomicity_s_max": 60})
