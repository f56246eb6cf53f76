"""Karpenter takes an empty node, one after another where one may go, and what was forbidden a moment too late."""

from __future__ import annotations

from cases import Case
from nodepools import chosen, claim_of, nodepool
from story import Story


def case() -> Case:
    story = Story()
    story.budget(1, 1)
    story.deployment(2)
    for node in ("a-1", "a-2", "b-1", "c-1", "c-2", "d-1"):
        claim_of(story, node)
        story.node(node)
    for number, node in enumerate(("c-1", "d-1")):
        story.pod(f"llm-{number}", node)
    nodepool(story, "a", "WhenEmptyOrUnderutilized", [{"nodes": "50%"}])
    nodepool(story, "b", "WhenEmpty", [{"nodes": "0", "schedule": "@daily", "duration": "1h"}])
    nodepool(story, "c", "WhenEmptyOrUnderutilized", [{"nodes": "1"}])
    nodepool(story, "d", "WhenEmptyOrUnderutilized", [{"nodes": "1"}])
    chosen(story, 200, "a-1", "Drifted")
    chosen(story, 210, "b-1", "Empty")
    chosen(story, 220, "c-1", "Underutilized")
    story.taint("c-1", 220)
    story.evict(221, "llm-0")
    story.remove(240, "NodeClaim", "c-1")
    chosen(story, 250, "c-2", "Underutilized")
    story.change(299, "NodePool", "d", lambda p: p["spec"]["disruption"].update(budgets=[{"nodes": "0"}]))
    chosen(story, 300, "d-1", "Drifted")
    return Case(story.build(), ("1 voluntary disruption under budget",), (), {}, 1, {"chosen_against_the_rules": 0})
