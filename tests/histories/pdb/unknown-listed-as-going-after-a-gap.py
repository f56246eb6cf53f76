"""A replacement came and a pod was evicted while nobody watched pods: the list shows both, but not in which order."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.budget(2, 0)
    for name in "ab":
        story.pod(f"llm-{name}", "on-demand-1")
    evicted = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    story.unseen("Pod", "llm-a", lambda p: p["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z"))
    story.unseen("Pod", "llm-a", lambda p: p["status"]["conditions"].append(evicted))
    story.gap(300, 310, "Pod")
    story.pod("llm-c", "on-demand-1", 310.1)
    return Case(story.build(), ("blind for Pod",), (), {}, 1, {"overdrawn": 0})
