"""Another team's Deployment grows while the system recovers, and a new Job of theirs comes: neither finds room."""

from __future__ import annotations

from bodies import UNSCHEDULABLE, pod_body, serving
from cases import Case
from drains import drained_at_200


def case() -> Case:
    story = drained_at_200()
    there = pod_body("shop", None, 30, 0)
    there["spec"]["nodeName"] = "on-demand-1"
    story.put(-5, "Pod", "shop-a", there | {"status": serving()}, namespace="shop")
    story.pod("llm-c", "on-demand-1", 202.5, running_s=205, ready_s=230)
    story.node_gone("spot-1", 250)
    for name, app in (("shop-b", "shop"), ("night-0", "night")):
        body = pod_body(app, None, 30, 0) | {"status": {"phase": "Pending", "conditions": [dict(UNSCHEDULABLE)]}}
        story.put(255, "Pod", name, body, namespace="shop")
    story.node("other", 590)
    return Case(story.build(), ("steady 0.0 s", "nothing left over"), (), {}, 1, {"left_over": 0})
