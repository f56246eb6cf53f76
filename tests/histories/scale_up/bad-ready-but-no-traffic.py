"""Ready and routed, but no first token ever came from it."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.deployment(1)
    story.pod("llm-a", "on-demand-1")
    story.mark(80, "load_step")
    story.scale(100, 2)
    story.pod("llm-b", "on-demand-1", 101, running_s=105, ready_s=130)
    story.traffic(150, 400, 10, ("llm-a",))
    return Case(story.build(), ("waited for traffic",), (), {"ready_s_max": 200}, 1)
