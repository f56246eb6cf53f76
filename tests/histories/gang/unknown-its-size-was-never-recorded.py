"""A member of a JobSet is lost, and none comes in its place. No object that says how many it needs was recorded."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    for name in ("on-demand-1", "on-demand-2"):
        story.node(name)
    for n in range(2):
        story.pod(f"train-{n}", f"on-demand-{n + 1}", app="train", group="train")
    story.evict(320, "train-0")
    story.node("late", 590)
    says = ("train went on with 1 of 2 members for", "nothing recorded says how many it needs")
    return Case(story.build(), says, spec={"atomicity_s_max": 60}, exercised=1)
