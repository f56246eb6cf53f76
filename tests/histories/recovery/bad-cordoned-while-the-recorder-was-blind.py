"""A node came and was cordoned while nobody saw, after the fault had struck; the list after it is not the first."""

from __future__ import annotations

from bodies import node_body
from cases import Case
from drains import drained_at_200


def case() -> Case:
    story = drained_at_200()
    cordoned = node_body(True, 4, {"name": "late", "uid": "uid-node-late"})
    cordoned["spec"] = {"taints": [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]}
    story._now["Node", "late"] = cordoned
    story.gap(205, 210, "Node")
    story.pod("llm-c", "on-demand-1", 212, running_s=215, ready_s=230)
    story.node_gone("spot-1", 250)
    story.node("other", 590)
    return Case(story.build(), ("1 thing left over: Node late is cordoned",), (), {"steady_s_max": 100}, 1, {})
