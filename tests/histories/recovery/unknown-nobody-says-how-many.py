"""Two pods of a LeaderWorkerSet went for good: no Deployment says how many there should be, and two there were."""

from __future__ import annotations

from cases import Case
from drains import two_of_a_set


def case() -> Case:
    story = two_of_a_set()
    for pod in ("llm-0", "llm-1"):
        story.evict(200, pod)
        story.end(210, pod)
    story.node("other", 590)
    says = ("0 pods were ready, of the 2 that were so when the first fault struck", "nothing recorded says how many")
    return Case(story.build(), says, ("faults:3",), {}, 1, {})
