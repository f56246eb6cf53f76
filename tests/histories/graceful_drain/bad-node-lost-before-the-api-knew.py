"""A spot machine went 2 s after its notice, under a pod that had been asked to go and one that had not. Karpenter saw
it 40 s later, and said then only that the instance was being ended."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import Outcome


def case() -> Case:
    story = Story()
    story.node("spot-1")
    for pod in ("llm-a", "llm-b"):
        story.pod(pod, "spot-1")
        story.request(290, pod, Outcome.RESET_MID_STREAM, lasts_s=13)
    story.claim("spot-1", 0, 1)
    story.taint("spot-1", 301)
    story.evict(301.5, "llm-a")
    ending = {"type": "InstanceTerminating", "status": "True"}
    story.change(340, "NodeClaim", "spot-1", lambda c: c["status"]["conditions"].append(ending))
    story.node_gone("spot-1", 340)
    says = ("2 node lost (requests 0 and 1; llm-a and llm-b on spot-1)",)
    return Case(story.build(), says, ("requests:0",), {}, 2, {"streams_lost": 2})
