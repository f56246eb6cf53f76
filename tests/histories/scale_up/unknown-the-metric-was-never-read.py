"""Nobody read the metric above its target before the decision: how long either took is not known."""

from __future__ import annotations

from cases import Case
from scaled import one_replica


def case() -> Case:
    story = one_replica()
    story.scale(140, 2)
    story.pod("llm-b", "on-demand-1", 141, running_s=145, ready_s=150)
    story.request(151, "llm-b", ttft_ms=500.0)
    says = ("T0' was not seen, so readable_s_max could not be judged", "so decided_s_max could not be judged")
    return Case(story.build(), says, (), {"ready_s_max": 300, "readable_s_max": 30, "decided_s_max": 40}, 1)
