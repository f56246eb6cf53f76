"""A node came and was taken away again after a minute, though no fault hit it."""

from __future__ import annotations

from cases import Case
from scaled import one_replica


def case() -> Case:
    story = one_replica()
    story.scale(100, 2)
    story.node("on-demand-2", 110, 130)
    story.scale(250, 1)
    story.node_gone("on-demand-2", 170)
    says = ("1 node went again too soon: on-demand-2 (60.0 s",)
    return Case(story.build(), says, ("objects:8",), {}, 1, {"nodes_short_lived": 1})
