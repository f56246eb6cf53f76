"""A drain deletes pods without asking the Eviction API."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("spot-1")
    story.node("on-demand-1")
    story.budget(3, 1)
    for name, node in zip("abcd", ["spot-1"] * 3 + ["on-demand-1"], strict=True):
        story.pod(f"llm-{name}", node)
    story.taint("spot-1", 320)
    story.evict(321, "llm-a", None)
    story.evict(321.1, "llm-b", None)
    story.evict(321.2, "llm-c", None)
    story.budget(3, 0, 321.3)
    return Case(
        story.build(),
        (
            "2 of 3 voluntary disruptions overdrew",
            "llm-b on spot-1 was deleted past the Eviction API",
            "leaving 2 healthy where llm asks for 3",
        ),
        (),
        {},
        3,
        {"overdrawn": 2, "deleted_past_eviction": 3},
    )
