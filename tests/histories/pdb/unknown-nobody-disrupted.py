"""No pod under the budget was disrupted on purpose."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.budget(1, 0)
    story.pod("llm-a", "on-demand-1")
    story.pod("other", "on-demand-1", app="other")
    story.evict(300, "other")
    return Case(story.build(), ("no pod under a budget was disrupted",), (), {}, 0)
