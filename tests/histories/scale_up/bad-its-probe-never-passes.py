"""The server of an added replica answers its probe, and answers 404: its model is loaded, its probe is wrong."""

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
    story.pod("llm-b", "on-demand-1", 101, bound_s=101.5, running_s=110)
    story.event(115, "llm-b", "Unhealthy", "Readiness probe failed: dial tcp: connection refused")
    story.event(130, "llm-b", "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 404")
    says = ("waited for its probe to pass", "statuscode: 404")
    return Case(story.build(), says, (), {"ready_s_max": 200}, 1)
