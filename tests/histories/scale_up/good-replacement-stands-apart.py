"""A replacement that takes long is no added capacity: its clock starts at its predecessor's end."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.deployment(2)
    story.pod("llm-a", "on-demand-1")
    story.pod("llm-b", "on-demand-1")
    story.mark(80, "load_step")
    story.scale(100, 3)
    story.pod("llm-c", "on-demand-1", 101, running_s=105, ready_s=130)
    story.request(140, "llm-c")
    story.evict(200, "llm-a")
    story.pod("llm-d", "on-demand-1", 200.5, running_s=260, ready_s=500)
    story.end(215, "llm-a")
    story.request(520, "llm-d")
    return Case(
        story.build(),
        ("1 added replica served", "1 replacement reported apart"),
        (),
        {"ready_s_max": 100},
        1,
        {"added": 1, "replacements": 1, "replacement_ready_s_worst": 322.0},
    )
