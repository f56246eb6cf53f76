"""Ten answers in both books; one more was cut on its way and ended by the server's account, too."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import Outcome


def case() -> Case:
    story = Story()
    story.pod("llm-a", "on-demand-1")
    story.pod("llm-b", "on-demand-1")

    for n in range(10):
        story.served(story.request(10 + n, "llm-a"), "llm-a")
    story.served(story.request(30, "llm-b", Outcome.RESET_MID_STREAM, chunks=12), "llm-b", 15, None)
    story.served(99, "llm-b")
    says = ("11 requests in both books: none answered twice, no token of a whole answer lost or repeated",)
    return Case(story.build(), says, (), {}, 11, {"of_others": 1})
