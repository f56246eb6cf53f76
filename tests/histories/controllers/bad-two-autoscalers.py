"""Two autoscalers have the same target."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.deployment(4)
    story.hpa(replicas_max=7)

    story.hpa(name="keda-hpa-llm", at_s=200)
    says = ("Deployment inference/llm has llm and keda-hpa-llm for autoscalers at once",)
    return Case(story.build(), says, ("objects:2",), {}, 1, {"targets_with_rival_autoscalers": 1})
