"""A picker goes by what a replica said before its metrics failed: it takes all, and the other stands idle."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.pod("llm-a", "on-demand-1")
    story.pod("llm-b", "on-demand-1")
    for n in range(20):
        story.request(10 + n, "llm-a", lasts_s=60)
    says = ("12 of 20 requests went to a replica that had 8 or more above another", "llm-a took 12", "llm-b had 0")
    return Case(story.build(), says, ("requests:8",), {}, 20, {"misplaced": 12, "apart_most": 19})
