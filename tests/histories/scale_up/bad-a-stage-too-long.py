"""The model took 170 s to load, more than its stage may, though the replica was in time as a whole."""

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
    story.pod("llm-b", "on-demand-1", 101, running_s=105, ready_s=275)
    story.request(276, "llm-b", ttft_ms=500.0)
    says = (
        "llm-b served after 201.0 s",
        "waited 170.0 s (17.00 s on the clock) for its model to be loaded (T7, limit 120 s)",
    )
    limits = {"ready_s_max": 300, "started_s_max": 10, "loaded_s_max": 120}
    return Case(story.build(), says, (), limits, 1, {"added_ready_s_worst": 201.0})
