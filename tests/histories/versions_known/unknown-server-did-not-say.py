"""A recording of old, without the version of the API server."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story(known=False)
    story.pod("llm-a", "on-demand-1")
    return Case(story.build(), ("the version of Kubernetes",), exercised=2)
