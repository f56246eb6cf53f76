"""Two pods are no longer listed after a gap: they may have gone one by one, each in time, or by an overdraft."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("spot-1")
    story.node("on-demand-1")
    story.budget(2, 1)
    for name in "abc":
        story.pod(f"llm-{name}", "spot-1" if name != "c" else "on-demand-1")
    story.taint("spot-1", 300)
    story.unseen("Pod", "llm-a")
    story.unseen("Pod", "llm-b")
    story.gap(301, 310, "Pod")
    return Case(story.build(), ("blind for Pod",), (), {}, 2, {"overdrawn": 0})
