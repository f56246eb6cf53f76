"""Which replicas were ready was not recorded for a while."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.pod("llm-a", "on-demand-1")
    story.pod("llm-b", "on-demand-1")
    for n in range(20):
        story.request(10 + n, "llm-a", lasts_s=60)
    story.gap(12, 20, "Pod")
    return Case(story.build(), ("blind for Pod",), ())
