"""The device plugin was late, and the kubelet rejected what was bound."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1", gpus=2)
    story.pod("llm-a", "on-demand-1")

    story.pod("llm-b", "on-demand-1", 100, bound_s=101)
    story.rejected(101.1, "llm-b")
    says = ("1 pod rejected by the node (first: llm-b on on-demand-1: Pod was rejected: Allocate failed",)
    return Case(story.build(), says, ("objects:5",), {}, 2, {"admission_failures": 1})
