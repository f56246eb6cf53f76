"""Where no fault was injected, scaling down is what was put to the test."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.deployment(2)
    story.pod("llm-a", "on-demand-1")
    story.pod("llm-b", "on-demand-1")
    story.request(395, "llm-a", lasts_s=20)
    story.scale(400, 1)
    story.evict(400.2, "llm-a", None)
    story.end(420, "llm-a")
    return Case(story.build(), ("1 stream in flight on 1 pod",), (), {}, 1)
