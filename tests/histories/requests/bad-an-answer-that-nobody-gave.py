"""A client has a whole answer from a server that knows nothing of it."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.pod("llm-a", "on-demand-1")
    story.pod("llm-b", "on-demand-1")

    story.served(story.request(10, "llm-a"), "llm-a")
    story.request(11, "llm-b")
    says = ("it was answered whole, but llm-b has no account of it",)
    return Case(story.build(), says, ("requests:1",), {}, 1, {"disagreements": 1})
