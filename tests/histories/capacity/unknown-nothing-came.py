"""No node came and no pod found no room."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story(time_scale=1, info={"prices_per_hour": {"on-demand": 12.0, "spot": 6.0}})
    story.node("on-demand-1")
    story.deployment(4)
    for pod in "abcd":
        story.pod(f"llm-{pod}", "on-demand-1")
    says = ("capacity was not put to the test",)
    return Case(story.build(), says, (), {}, 0, {})
