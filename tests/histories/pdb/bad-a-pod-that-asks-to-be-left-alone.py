"""A drain takes two pods within the budget, one of which forbids it by an annotation; one elsewhere is scaled away."""

from __future__ import annotations

from cases import Case
from story import Story

KEPT = {"karpenter.sh/do-not-disrupt": "true"}


def case() -> Case:
    story = Story()
    story.node("spot-1")
    story.node("on-demand-1")
    story.budget(2, 2)
    story.deployment(4)
    story.pod("llm-a", "spot-1")
    story.pod("llm-b", "spot-1", annotations=KEPT)
    story.pod("llm-c", "on-demand-1", annotations=KEPT)
    story.pod("llm-d", "on-demand-1")
    story.taint("spot-1", 320)
    story.evict(321, "llm-a")
    story.evict(322, "llm-b")
    story.scale(400, 3)
    story.evict(400.3, "llm-c", None)
    says = ("1 pod taken by a drain in spite of karpenter.sh/do-not-disrupt: llm-b on spot-1",)
    return Case(story.build(), says, (), {}, 3, {"overdrawn": 0, "taken_against_their_wish": 1})
