"""The autoscaler raises the size and takes it back after the burst."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.deployment(4)
    story.hpa(replicas_max=7)

    story.scale(100, 7)
    story.hpa_says(101, "8")
    story.hpa_says(160, "0")
    story.scale(400, 4)
    says = ("2 changes of a size, by kube-controller-manager by scale (2)", "no fight")
    return Case(story.build(), says, ("objects:3",), {}, 2, {"writers": 1})
