"""A node with another GPU came, and a pod that was meant for H100s was bound to it."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.node("on-demand-2", 50, 60)
    other = {"nvidia.com/gpu.product": "A10G"}
    story.change(61, "Node", "on-demand-2", lambda node: node["metadata"]["labels"].update(other))
    story.pod("llm-a", "on-demand-2", 100, bound_s=101, running_s=105, ready_s=120)
    says = ("1 pod on another GPU than declared: llm-a on on-demand-2, which has A10G (H100)",)
    return Case(story.build(), says, ("objects:6",), {"gpu_products": ["H100"]}, 1, {"wrong_gpu_product": 1})
