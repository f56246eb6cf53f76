"""KAI's own PodGroup was not recorded: of three pods that name it, one has a GPU and two found no room."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    for n in range(3):
        story.pod(f"train-{n}", "on-demand-1" if n == 0 else None, 300, refused_s=301 if n else None, bound_s=301,
                  app="train", annotations={"pod-group-name": "pg-train"})  # fmt: skip
    story.event(450, "train-1", "FailedScheduling", "0/1 nodes are available")
    says = ("pg-train held 1 of the 3 members it needs",)
    return Case(story.build(), says, (), {"atomicity_s_max": 60}, 1)
