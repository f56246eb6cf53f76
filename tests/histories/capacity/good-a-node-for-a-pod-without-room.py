"""One pod finds no room, one node comes for it, and the price is known."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story(time_scale=1, info={"prices_per_hour": {"on-demand": 12.0, "spot": 6.0}})
    story.node("on-demand-1")
    story.deployment(4)
    for pod in "abcd":
        story.pod(f"llm-{pod}", "on-demand-1")

    story.scale(100, 5)
    story.pod("llm-e", "on-demand-2", 100.5, refused_s=101, bound_s=160, running_s=170, ready_s=190)
    story.node("on-demand-2", 130, 158)
    story.request(10, "llm-a", output_tokens=200_000)
    says = (
        "1 node came, never more than 0 beyond need",
        "1 pod short of GPUs, the longest for 59.0 s",
        "per million tokens",
    )
    return Case(
        story.build(),
        says,
        ("objects:14",),
        {"gpu_idle_ratio_max": 0.5},
        3,
        {
            "nodes_created": 1,
            "short_s_worst": 59.0,
            "cost": 12 * 600 / 3600 + 12 * 470 / 3600,
            "output_tokens": 200_000,
        },
    )
