"""A worker of a LeaderWorkerSet is lost and comes back; half a minute later all others are made anew, too."""

from __future__ import annotations

from cases import Case
from story import Story

LWS = "leaderworkerset.sigs.k8s.io"


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    template = {"size": 3, "restartPolicy": "RecreateGroupOnPodRestart"}
    story.put(-5, "LeaderWorkerSet", "ds", {"spec": {"leaderWorkerTemplate": template}})
    first = [(f"ds-0-{n}", 100) for n in range(3)]
    for name, at_s in (*first, ("ds-0-1-b", 220), *((f"ds-0-{n}-c", 252) for n in range(3))):
        story.pod(
            name,
            "on-demand-1",
            at_s,
            bound_s=at_s + 1,
            app="ds",
            labels={f"{LWS}/name": "ds", f"{LWS}/group-index": "0"},
            annotations={f"{LWS}/size": "3"},
        )
    story.evict(200, "ds-0-1")
    for name in ("ds-0-0", "ds-0-1-b", "ds-0-2"):
        story.evict(250, name)
    says = ("1 lost a member",)
    limits = {"atomicity_s_max": 60, "whole_again_s_max": 120}
    return Case(story.build(), says, (), limits, 1, {"of_before_and_after_a_loss": 0})
