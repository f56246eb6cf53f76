"""A drain takes a pod that forbids it, under a budget that selects nothing; then its node goes and comes again, with a
claim of which the drain would have an end."""

from __future__ import annotations

from cases import Case
from story import Story

KEPT = {"karpenter.sh/do-not-disrupt": "true"}
DEADLINE = {"karpenter.sh/nodeclaim-termination-timestamp": "2026-01-01T01:00:00Z"}


def case() -> Case:
    story = Story()
    story.node("spot-1")
    story.claim("first", -5)
    story.change(-4, "NodeClaim", "first", lambda c: c["status"].update(nodeName="spot-1"))
    story.deployment(2)
    status = {"expectedPods": 0, "desiredHealthy": 0, "currentHealthy": 0, "disruptionsAllowed": 0}
    typo = {"spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "lllm"}}}, "status": status}
    story.put(-4, "PodDisruptionBudget", "llm", typo)
    story.pod("llm-a", "spot-1", annotations=KEPT)
    story.taint("spot-1", 320)
    story.evict(321, "llm-a")
    story.end(330, "llm-a")
    story.node_gone("spot-1", 340)
    story.remove(341, "NodeClaim", "first")
    story.claim("second", 400)
    second = {"metadata": {"annotations": DEADLINE}, "status": {"nodeName": "spot-1"}}
    story.change(
        401,
        "NodeClaim",
        "second",
        lambda c: (c["metadata"].update(second["metadata"]), c.update(status=second["status"])),
    )
    story.node("spot-1", 410, usable_s=420)
    says = (
        "1 pod taken by a drain in spite of karpenter.sh/do-not-disrupt: llm-a on spot-1",
        "llm selects nothing, so llm-a was drained under no budget",
    )
    return Case(story.build(), says, (), {}, 2, {"taken_against_their_wish": 1})
