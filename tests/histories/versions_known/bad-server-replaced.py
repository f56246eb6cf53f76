"""The control plane was upgraded in the middle of the run."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.pod("llm-a", "on-demand-1")
    story.mark(100, "kubernetes_version", "v1.36.0")
    return Case(story.build(), ("no one version was tested",), evidence=("marks:0",))
