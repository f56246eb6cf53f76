"""The workload's image is whatever ``latest`` was on that day."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.pod("llm-a", "on-demand-1")
    story.change(10, "Pod", "llm-a", lambda pod: pod["spec"]["containers"][0].update(image="vllm/vllm-openai:latest"))
    return Case(story.build(), ("of the image vllm/vllm-openai:latest",))
