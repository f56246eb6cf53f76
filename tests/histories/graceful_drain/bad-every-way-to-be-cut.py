"""Each way in which a sent request can lose its answer counts as lost; whole and planned ones never do."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import CUT, Outcome


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.pod("llm-a", "on-demand-1")
    for number, outcome in enumerate(sorted(CUT)):
        story.request(10 + 20 * number, "llm-a", outcome, lasts_s=5)
    story.request(500, "llm-a")
    story.request(510, "llm-a", Outcome.ABORTED_BY_CLIENT)
    return Case(
        story.build(),
        (f"{len(CUT)} streams lost",),
        tuple(f"requests:{n}" for n in range(len(CUT))),
        {},
        0,
        {"streams_lost": len(CUT), "hung_up_by_plan": 1},
    )
