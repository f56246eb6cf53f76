"""One replica finds a free GPU, one waits for a new node; both serve in time, with every mark dated."""

from __future__ import annotations

from cases import Case
from scaled import one_replica


def case() -> Case:
    story = one_replica()
    story.waiting(95, llm_a=5.0)
    story.scale(100, 3)
    story.pod("llm-b", "on-demand-1", 101, running_s=105, ready_s=130)
    story.pod("llm-c", "on-demand-2", 101, refused_s=102, bound_s=150, running_s=170, ready_s=195)
    story.claim("on-demand-2", 104, 106)
    story.node("on-demand-2", 140, 150)
    story.request(132, "llm-b", ttft_ms=100.0)
    story.request(200, "llm-c", ttft_ms=100.0)
    return Case(
        story.build(),
        ("2 added replicas", "within 121.0 s (12.10 s on the clock)"),
        (),
        {"ready_s_max": 300},
        2,
        {
            "added": 2,
            "added_served": 2,
            "replacements": 0,
            "added_ready_s_worst": 121.0,
            "added_ready_clock_s_worst": 12.1,
        },
    )
