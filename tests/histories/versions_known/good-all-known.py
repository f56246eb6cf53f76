"""The harness, the server and the image of the workload say which they are."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.pod("llm-a", "on-demand-1")
    says = ("harness 0.1.0", "Kubernetes v1.37.2", "vllm/vllm-openai:v0.32.0")
    return Case(story.build(), says, exercised=3)
