"""Karpenter's NodePools in a story, and nodes that it chooses of its own will."""

from __future__ import annotations

from typing import Any

from story import Story


def nodepool(story: Story, name: str, policy: str, budgets: list[dict[str, Any]]) -> None:
    spec = {"disruption": {"consolidationPolicy": policy, "budgets": budgets}}
    story.put(-5, "NodePool", name, {"spec": spec}, namespace=None)


def claim_of(story: Story, node: str) -> None:
    """Its NodePool is what stands before the dash."""
    labels = {"karpenter.sh/nodepool": node.partition("-")[0]}
    body = {"metadata": {"labels": labels}, "status": {"nodeName": node}}
    story.put(-5, "NodeClaim", node, body, namespace=None)


def chosen(story: Story, at_s: float, claim: str, reason: str) -> None:
    said = [{"type": "DisruptionReason", "status": "True", "reason": reason}]
    story.change(at_s, "NodeClaim", claim, lambda c: c["status"].update(conditions=said))
