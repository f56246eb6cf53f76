"""Three replicas for a burst; two go again, and the stream on one of them ends whole."""

from __future__ import annotations

from cases import Case
from scaled import one_replica


def case() -> Case:
    story = one_replica()
    story.waiting(90, llm_a=5.0)
    story.scale(100, 3)
    for pod in ("llm-b", "llm-c"):
        story.pod(pod, "on-demand-1", 100.5, running_s=105, ready_s=120)
    story.waiting(150, llm_a=3.0)
    story.waiting(165, llm_a=0.0)
    story.request(398, "llm-b", lasts_s=8)
    story.scale(400, 1)
    for pod in ("llm-b", "llm-c"):
        story.evict(400.5, pod, reason=None)
        story.end(412, pod)
    says = ("back within 250.0 s", "no thrash")
    return Case(
        story.build(), says, ("objects:18",), {}, 1, {"return_s_worst": 250.0, "reversals": 0, "streams_lost": 0}
    )
