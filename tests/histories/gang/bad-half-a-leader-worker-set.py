"""A group of a LeaderWorkerSet has its leader and one worker on GPUs for three minutes; the third found no room."""

from __future__ import annotations

from cases import Case
from story import Story

LWS = "leaderworkerset.sigs.k8s.io"


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    for n in range(3):
        node = "on-demand-1" if n < 2 else "on-demand-2"
        refused_s = None if n < 2 else 301
        story.pod(
            f"ds-0-{n}",
            node,
            300,
            refused_s=refused_s,
            bound_s=301 if n < 2 else 481,
            app="ds",
            labels={f"{LWS}/name": "ds", f"{LWS}/group-index": "0"},
            annotations={f"{LWS}/size": "3"},
        )
    says = ("ds-0 held 2 of the 3 members it needs for 180.0 s",)
    return Case(story.build(), says, (), {"atomicity_s_max": 60}, 1)
