"""Pods on a node, and no Node in all the recording: what befell it was not watched."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.deployment(1)
    story.pod("llm-a", "on-demand-1")
    return Case(story.build(), ("saw no Node",))
