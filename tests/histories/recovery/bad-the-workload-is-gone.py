"""Everything is Ready again, but the workload itself was deleted meanwhile: nobody wants a replica."""

from __future__ import annotations

from cases import Case
from drains import drained_at_200


def case() -> Case:
    story = drained_at_200()
    story.pod("llm-c", "on-demand-1", 202.5, running_s=205, ready_s=300)
    story.node_gone("spot-1", 260)
    story.remove(310, "Deployment", "llm")
    story.node("other", 590)
    return Case(story.build(), ("Deployment llm was gone",), (), {}, 1, {"steady_s": None})
