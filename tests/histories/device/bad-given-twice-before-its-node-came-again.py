"""Three pods run on two GPUs, one of them on others than declared; a node of that name with more and right ones comes
later."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1", gpus=2)
    story.label_node("on-demand-1", "nvidia.com/gpu.product", "A10G")
    for number, pod in enumerate(("llm-a", "llm-b", "llm-c")):
        at_s = 100 + 50 * number
        story.pod(pod, "on-demand-1", at_s, bound_s=at_s + 1, running_s=at_s + 5, ready_s=at_s + 20)
    for pod in ("llm-a", "llm-b", "llm-c"):
        story.evict(300, pod)
        story.end(310, pod)
    story.node_gone("on-demand-1", 320)
    story.node("on-demand-1", 400, usable_s=410, gpus=8)
    right = {"nvidia.com/gpu.product": "H100"}
    story.change(411, "Node", "on-demand-1", lambda node: node["metadata"]["labels"].update(right))
    says = (
        "on-demand-1 gave GPUs out twice: 3 GPUs are in use where there are 2",
        "3 pods on another GPU than declared: llm-a on on-demand-1, which has A10G",
    )
    return Case(story.build(), says, (), {"gpu_products": ["H100"]}, 3, {"given_twice": 1, "wrong_gpu_product": 3})
