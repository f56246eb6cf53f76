"""A node is Ready for six minutes and shows no GPU."""

from __future__ import annotations

from bodies import node_body
from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1", gpus=2)
    story.pod("llm-a", "on-demand-1")

    story.node("on-demand-2", 100)
    story.change(120, "Node", "on-demand-2", lambda n: n.update(node_body(True, 0, n["metadata"])))
    story.node("other", 590)
    says = ("on-demand-2 never showed 4 GPUs for 480.0 s",)
    return Case(story.build(), says, ("objects:4",), {}, 1, {"lost": 1})
