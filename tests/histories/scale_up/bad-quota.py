"""The ReplicaSet was raised, but no pod was ever created."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.deployment(1)
    story.pod("llm-a", "on-demand-1")
    story.mark(80, "load_step")
    story.scale(100, 2)
    story.node("other", 590)
    return Case(story.build(), ("a replica without a pod never served", "quota"), (), {"ready_s_max": 200}, 1)
