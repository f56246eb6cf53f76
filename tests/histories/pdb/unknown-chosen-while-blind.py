"""An annotated node is chosen, but the recorder was blind for claims: when it was chosen is not known."""

from __future__ import annotations

from cases import Case
from nodepools import chosen, claim_of, nodepool
from story import Story


def case() -> Case:
    story = Story()
    story.budget(1, 1)
    story.deployment(1)
    claim_of(story, "a-1")
    story.node("a-1")
    story.pod("llm-0", "a-1")
    nodepool(story, "a", "WhenEmptyOrUnderutilized", [{"nodes": "100%"}])
    story.change(50, "Node", "a-1", lambda n: n["metadata"].update(annotations={"karpenter.sh/do-not-disrupt": "true"}))
    story.gap(190, 199, "NodeClaim")
    chosen(story, 200, "a-1", "Drifted")
    return Case(story.build(), ("no pod under a budget was disrupted",), (), {}, 0, {"chosen_against_the_rules": 0})
