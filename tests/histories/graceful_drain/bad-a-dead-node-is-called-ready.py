"""All streams of a node fall and no more come, while the API goes on to call the node and its pods Ready."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import Outcome


def case() -> Case:
    story = Story()
    for node in ("on-demand-1", "on-demand-2"):
        story.node(node)
    story.pod("llm-a", "on-demand-1")
    story.pod("llm-b", "on-demand-1")
    story.pod("llm-c", "on-demand-2")
    for pod in ("llm-a", "llm-b"):
        story.request(300, pod, lasts_s=9)
        story.request(305, pod, Outcome.RESET_MID_STREAM, lasts_s=10)
    story.traffic(350, 400, 2, ("llm-c",))
    says = (
        "2 streams lost",
        "2 its node is dead, though it is called Ready (requests 1 and 3; llm-a and llm-b on on-demand-1)",
    )
    return Case(story.build(), says, ("requests:1", "requests:3"), {}, None, {"streams_lost_unexplained": 0})
