"""A gang of two holds one GPU until the end."""

from __future__ import annotations

from cases import Case
from drains import drained_at_200


def case() -> Case:
    story = drained_at_200()
    story.group("gang-a", 2)
    story.pod("gang-a-0", "spot-1", app="gang-a", group="gang-a")
    story.pod("gang-a-1", "on-demand-1", app="gang-a", group="gang-a")
    story.evict(203, "gang-a-0")
    story.end(206, "gang-a-0")
    story.pod("llm-c", "on-demand-1", 202.5, running_s=205, ready_s=230)
    story.node_gone("spot-1", 260)
    story.node("other", 590)
    says = ("gang-a had 1 of 2 members", "PodGroup gang-a holds 1 of 2 members")
    return Case(story.build(), says, ("objects:16",), {}, 1, {"left_over": 1})
