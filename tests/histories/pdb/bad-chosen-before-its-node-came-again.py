"""Karpenter chooses a node that is annotated, and one of a NodePool WhenEmpty; later nodes and a NodePool of their
names forbid nothing."""

from __future__ import annotations

from cases import Case
from nodepools import chosen, claim_of, nodepool
from story import Story


def case() -> Case:
    story = Story()
    story.budget(1, 1)
    story.deployment(2)
    for node in ("a-1", "b-1"):
        claim_of(story, node)
        story.node(node)
    nodepool(story, "a", "WhenEmptyOrUnderutilized", [{"nodes": "100%"}])
    nodepool(story, "b", "WhenEmpty", [{"nodes": "100%"}])
    story.change(50, "Node", "a-1", lambda n: n["metadata"].update(annotations={"karpenter.sh/do-not-disrupt": "true"}))
    chosen(story, 200, "a-1", "Drifted")
    chosen(story, 210, "b-1", "Underutilized")
    story.node_gone("a-1", 250)
    story.node("a-1", 300, usable_s=310)
    story.remove(320, "NodePool", "b")
    story.put(330, "NodePool", "b", {"spec": {"disruption": {"budgets": [{"nodes": "100%"}]}}}, namespace=None)
    says = (
        "a-1 was chosen as Drifted in spite of karpenter.sh/do-not-disrupt",
        "b-1 was chosen as Underutilized, though b gives up empty nodes only",
    )
    return Case(story.build(), says, (), {}, 2, {"chosen_against_the_rules": 2})
