"""Two evictions are admitted, the third is refused until a replacement is Ready."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("spot-1")
    story.node("on-demand-1")
    story.budget(5, 2)
    for name, node in zip("abcdefg", ["spot-1"] * 3 + ["on-demand-1"] * 4, strict=True):
        story.pod(f"llm-{name}", node)
    story.taint("spot-1", 320)
    story.evict(321, "llm-a")
    story.budget(5, 1, 321.01)
    story.evict(321.1, "llm-b")
    story.budget(5, 0, 321.11)
    story.end(340, "llm-a")
    story.pod("llm-h", "on-demand-1", 322, running_s=325, ready_s=350)
    story.budget(5, 1, 350.1)
    story.evict(352, "llm-c")
    numbers = {"voluntary": 3, "evicted": 3, "overdrawn": 0, "refused": 1, "healthy_spare_min": 0}
    says = ("3 voluntary disruptions under budget llm", "1 pod held back")
    return Case(story.build(), says, (), {}, 3, numbers)
