"""Three tokens came twice."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.pod("llm-a", "on-demand-1")
    story.pod("llm-b", "on-demand-1")

    story.served(story.request(10, "llm-a", chunks=23), "llm-a")
    says = ("3 tokens repeated", "llm-a sent 20 parts, 23 came")
    return Case(story.build(), says, ("requests:0",), {}, 1, {"tokens_repeated": 3})
