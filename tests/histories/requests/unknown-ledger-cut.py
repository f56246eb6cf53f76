"""The book is cut, and what is missing from it proves nothing."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.pod("llm-a", "on-demand-1")
    story.pod("llm-b", "on-demand-1")

    story.served(story.request(10, "llm-a"), "llm-a")
    story.request(11, "llm-b")
    story.gap(0, 600, "ledger.jsonl", "ledger.jsonl: line 3 is cut or damaged")
    says = ("the second book is damaged",)
    return Case(story.build(), says, (), {}, 1, {})
