"""Somebody had cordoned a node before the run began: that is left over of no fault."""

from __future__ import annotations

from bodies import node_body
from cases import Case
from drains import drained_at_200


def case() -> Case:
    story = drained_at_200()
    cordoned = node_body(True, 4, {})
    cordoned["spec"] = {"taints": [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]}
    story.put(-5, "Node", "kept-out", cordoned, namespace=None)
    story.pod("llm-c", "on-demand-1", 202.5, running_s=205, ready_s=230)
    story.node_gone("spot-1", 250)
    story.node("other", 590)
    return Case(story.build(), ("steady 0.0 s", "nothing left over"), ("faults:3",), {}, 1, {"left_over": 0})
