"""A pod of another team was on the node that the fault took, and the one in its place finds no room any more."""

from __future__ import annotations

from bodies import UNSCHEDULABLE, pod_body, serving
from cases import Case
from drains import drained_at_200


def case() -> Case:
    story = drained_at_200()
    there = pod_body("shop", None, 30, 0)
    there["spec"]["nodeName"] = "spot-1"
    story.put(-5, "Pod", "shop-a", there | {"status": serving()}, namespace="shop")
    story.pod("llm-c", "on-demand-1", 202.5, running_s=205, ready_s=230)
    story.evict(202, "shop-a")
    story.end(215, "shop-a")
    story.node_gone("spot-1", 250)
    waits = {"status": {"phase": "Pending", "conditions": [dict(UNSCHEDULABLE)]}}
    story.put(203, "Pod", "shop-b", pod_body("shop", None, 30, 0) | waits, namespace="shop")
    story.node("other", 590)
    return Case(story.build(), ("not steady for", "shop-b found no room"), (), {"steady_s_max": 100}, 1, {})
