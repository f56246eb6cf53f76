"""A group of a LeaderWorkerSet that is to be made anew as a whole, as two histories tell it."""

from __future__ import annotations

from collections.abc import Iterable

from story import Story

LWS = "leaderworkerset.sigs.k8s.io"
FIRST = tuple((f"ds-0-{n}", 100) for n in range(3))


def worker_lost(made_later: Iterable[tuple[str, float]]) -> Story:
    """Three pods from 100 s of the load on, of which one is lost at 200 s; others when ``made_later`` says."""
    story = Story()
    story.node("on-demand-1")
    template = {"size": 3, "restartPolicy": "RecreateGroupOnPodRestart"}
    story.put(-5, "LeaderWorkerSet", "ds", {"spec": {"leaderWorkerTemplate": template}})
    for name, at_s in (*FIRST, *made_later):
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
    return story
