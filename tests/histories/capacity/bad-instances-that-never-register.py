"""Three instances are paid for at once, and none of them ever becomes a Node."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story(time_scale=1)
    story.node("on-demand-1")
    story.deployment(2)
    story.pod("llm-a", "on-demand-1")

    for n in (2, 3, 4):
        story.claim(f"on-demand-{n}", 100 + n, 110 + n)
    says = ("3 instances at once without a Node 120 s after their launch (allowed 1)",)
    return Case(story.build(), says, (), {"unregistered_max": 1}, 3, {"instances_without_node": 3})
