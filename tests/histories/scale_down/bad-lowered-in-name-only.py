"""The size is back at the floor a minute after the burst, and nobody asks a pod to go."""

from __future__ import annotations

from cases import Case
from scaled import one_replica


def case() -> Case:
    story = one_replica()
    story.scale(100, 3)
    for pod in ("llm-b", "llm-c"):
        story.pod(pod, "on-demand-1", 100.5, running_s=105, ready_s=120)
    story.scale(160, 1)
    story.node("other", 590)
    says = ("llm still had 3 pods that nobody asked to go, at a floor of 1, 500.0 s", "limit 400 s")
    return Case(story.build(), says, (), {"floor_s_max": 400.0}, 1, {"returned": 0, "late": 1})
