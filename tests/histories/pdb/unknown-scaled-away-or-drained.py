"""The pod was scaled away, but the recorder was blind for the sizes: it may as well have been drained."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.deployment(3)
    story.budget(2, 1)
    for name in "abc":
        story.pod(f"llm-{name}", "on-demand-1")
    story.taint("on-demand-1", 300)
    for kind, name in (("Deployment", "llm"), ("ReplicaSet", "llm-1")):
        story.unseen(kind, name, lambda obj: obj["spec"].update(replicas=1))
    story.evict(400.2, "llm-b", None)
    story.evict(400.2, "llm-c", None)
    story.gap(390, 430, "Deployment")
    story.gap(390, 430, "ReplicaSet")
    return Case(story.build(), ("blind for Deployment",), (), {}, 2, {"overdrawn": 0})
