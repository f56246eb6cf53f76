"""One pod is short, and four nodes come."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story(time_scale=1, info={"prices_per_hour": {"on-demand": 12.0, "spot": 6.0}})
    story.node("on-demand-1")
    story.deployment(4)
    for pod in "abcd":
        story.pod(f"llm-{pod}", "on-demand-1")

    story.scale(100, 5)
    story.pod("llm-e", "on-demand-2", 100.5, refused_s=101, bound_s=160, running_s=170, ready_s=190)
    for n in range(2, 6):
        story.node(f"on-demand-{n}", 130 + n, 158)
    says = ("3 nodes more than needed at once (allowed 1)",)
    return Case(story.build(), says, ("objects:14",), {}, 5, {"nodes_over": 3})
