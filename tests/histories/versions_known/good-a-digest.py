"""The tag says nothing, but the node says which image it was."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.pod("llm-a", "on-demand-1")
    known = {"name": "vllm", "imageID": "vllm/vllm-openai@sha256:0123"}
    story.change(5, "Pod", "llm-a", lambda pod: pod["spec"]["containers"][0].update(image="vllm/vllm-openai"))
    story.change(10, "Pod", "llm-a", lambda pod: pod["status"].update(containerStatuses=[known]))
    return Case(story.build(), ("1 image of the workload: vllm/vllm-openai",))
