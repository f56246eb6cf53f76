"""Karpenter chooses a node that is annotated, a half-empty one of a NodePool WhenEmpty, and two where one may go."""

from __future__ import annotations

from cases import Case
from nodepools import chosen, claim_of, nodepool
from story import Story


def case() -> Case:
    story = Story()
    story.budget(1, 1)
    story.deployment(2)
    for node in ("a-1", "b-1", "c-1", "c-2", "c-3"):
        claim_of(story, node)
        story.node(node)
    for number, node in enumerate(("c-1", "c-3")):
        story.pod(f"llm-{number}", node)
    nodepool(story, "a", "WhenEmptyOrUnderutilized", [{"nodes": "100%"}])
    nodepool(story, "b", "WhenEmpty", [{"nodes": "100%"}])
    nodepool(story, "c", "WhenEmptyOrUnderutilized", [{"nodes": "1", "reasons": ["Underutilized"]}, {"nodes": "100%"}])
    story.change(50, "Node", "a-1", lambda n: n["metadata"].update(annotations={"karpenter.sh/do-not-disrupt": "true"}))
    chosen(story, 200, "a-1", "Drifted")
    chosen(story, 210, "b-1", "Underutilized")
    chosen(story, 220, "c-1", "Underutilized")
    chosen(story, 230, "c-2", "Underutilized")
    says = (
        "3 times Karpenter broke its own rules",
        "a-1 was chosen as Drifted in spite of karpenter.sh/do-not-disrupt",
        "b-1 was chosen as Underutilized, though b gives up empty nodes only",
        "2 nodes of c left at once (Underutilized), where its budget allows 1",
    )
    return Case(story.build(), says, (), {}, 3, {"chosen_against_the_rules": 3})
