"""It served, but its node was never seen to register, so the limit on that stage could not be judged."""

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
    story.pod("llm-b", "on-demand-2", 101, refused_s=102, bound_s=150, running_s=170, ready_s=195)
    story.claim("on-demand-2", 104, 106)
    story.request(200, "llm-b", ttft_ms=100.0)
    limits = {"ready_s_max": 300, "registered_s_max": 60}
    says = ("T4 was not seen, so registered_s_max could not be judged",)
    return Case(story.build(), says, (), limits, 1, {"added_served": 1})
