"""The autoscaler says for a minute that it reads seven where it keeps two."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.deployment(4)
    story.hpa(replicas_max=7)

    story.hpa_says(100, "7500m")
    story.hpa_says(130, "9")
    story.hpa_says(160, "0")
    says = ("llm read up to 9 where it keeps 2, below its maximum, and did nothing for 60.0 s",)
    return Case(story.build(), says, ("objects:3",), {}, 1, {"needs_not_acted_on": 1})
