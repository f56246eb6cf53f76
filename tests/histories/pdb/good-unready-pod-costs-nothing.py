"""Evicting a pod that was not healthy leaves as many healthy as before."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.budget(2, 0)
    for name in "abc":
        story.pod(f"llm-{name}", "on-demand-1")
    story.unready(290, "llm-a")
    story.evict(300, "llm-a")
    return Case(story.build(), ("exactly as many healthy",), (), {}, 1, {"overdrawn": 0})
