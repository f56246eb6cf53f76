"""A worker of a LeaderWorkerSet is lost, and only it comes back, though the group is to be made anew as a whole."""

from __future__ import annotations

from cases import Case
from story import Story

LWS = "leaderworkerset.sigs.k8s.io"


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    template = {"size": 3, "restartPolicy": "RecreateGroupOnPodRestart"}
    story.put(-5, "LeaderWorkerSet", "ds", {"spec": {"leaderWorkerTemplate": template}})
    for name, at_s in (("ds-0-0", 100), ("ds-0-1", 100), ("ds-0-2", 100), ("ds-0-1-b", 220)):
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
    says = (
        "ds-0 had ds-0-1-b, made anew after a loss, beside ds-0-0 and ds-0-2 of before it for",
        "asked for all of them anew",
    )
    limits = {"atomicity_s_max": 60, "whole_again_s_max": 120}
    return Case(story.build(), says, (), limits, 1, {"of_before_and_after_a_loss": 1})
