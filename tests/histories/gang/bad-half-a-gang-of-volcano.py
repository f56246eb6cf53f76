"""Volcano's own PodGroup says how many it needs (spec.minMember); it calls a part that runs phase Unknown."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    status = {"phase": "Unknown", "running": 2}
    story.put(300, "PodGroup", "podgroup-train", {"spec": {"minMember": 3, "queue": "default"}, "status": status})
    for n in range(3):
        story.pod(f"train-{n}", "on-demand-1" if n < 2 else None, 300, refused_s=None if n < 2 else 301, bound_s=301,
                  app="train", annotations={"scheduling.k8s.io/group-name": "podgroup-train"})  # fmt: skip
    says = ("podgroup-train held 2 of the 3 members it needs",)
    return Case(story.build(), says, (), {"atomicity_s_max": 60}, 1)
