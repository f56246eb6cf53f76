"""One controller wakes the workload from 0, another scales it on."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.deployment(4)
    story.hpa(replicas_max=7)

    story.scale(90, 0)
    story.scale(100, 1, "keda")
    story.scale(110, 4)
    says = ("no fight",)
    return Case(story.build(), says, ("objects:3",), {}, 3, {"fights": 0, "writers": 2})
