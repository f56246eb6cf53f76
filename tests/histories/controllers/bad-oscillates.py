"""The size goes up and down every half minute."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.deployment(4)
    story.hpa(replicas_max=7)

    for n in range(4):
        story.scale(100 + 30 * n, 7 if n % 2 == 0 else 4)
    says = ("3 oscillations (allowed 2; first: llm 4, 7, 4)",)
    return Case(story.build(), says, ("objects:5",), {}, 4, {"oscillations": 3})
