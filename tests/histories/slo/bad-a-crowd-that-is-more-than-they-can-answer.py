"""Forty seconds of five times the load, half of which is answered in that time; a node that is lost long after it."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import Outcome


def case() -> Case:
    story = Story()
    for node, pod in (("spot-1", "llm-a"), ("on-demand-1", "llm-b")):
        story.node(node)
        story.pod(pod, node)
    story.traffic(100, 160, 1, ("llm-a", "llm-b"), lasts_s=5)
    story.mark(160, "load_step", "5.0")
    for turn in range(200):
        behind_s = turn * 0.2
        late = {"ttft_ms": 50.0 + 100 * behind_s, "lasts_s": 5 + behind_s}
        story.request(160 + behind_s, ("llm-a", "llm-b")[turn % 2], **late)
    story.request(415, "llm-a", Outcome.RESET_MID_STREAM, lasts_s=25)
    story.node_gone("spot-1", 441)
    says = ("of 261 late", "surely not 95% in time")
    return Case(story.build(), says, (), {"ttft_ms_p95": 1000}, 261)
