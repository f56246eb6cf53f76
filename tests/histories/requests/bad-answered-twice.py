"""The gateway sent a request again after the first server had begun to answer."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.pod("llm-a", "on-demand-1")
    story.pod("llm-b", "on-demand-1")

    again = story.request(10, "llm-b", chunks=27)
    story.served(again, "llm-a", 7, None)
    story.served(again, "llm-b")
    says = (
        "1 answer given more than once",
        "7 tokens repeated",
        "it was sent 1 time(s), but answered by llm-a and llm-b",
    )
    return Case(story.build(), says, ("requests:0",), {}, 1, {"answers_repeated": 1, "tokens_repeated": 7})
