"""One pod was evicted before there was a budget, another when it allowed one."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    for pod in ("llm-a", "llm-b", "llm-c"):
        story.pod(pod, "on-demand-1")
    story.evict(100, "llm-a")
    story.end(110, "llm-a")
    story.budget(1, 1, 150, healthy=2)
    story.evict(201, "llm-b")
    story.end(210, "llm-b")
    return Case(story.build(), ("1 voluntary disruption under budget",), (), {}, 1, {"voluntary": 1})
