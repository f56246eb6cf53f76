"""A pod group of Kueue waits for a node, and then has all of it at once; a Ray cluster grows by one meanwhile."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    for n in range(2):
        story.pod(
            f"job-{n}",
            "on-demand-2",
            300,
            refused_s=301,
            bound_s=400,
            app="job",
            labels={"kueue.x-k8s.io/pod-group-name": "job"},
            annotations={"kueue.x-k8s.io/pod-group-total-count": "2"},
        )
    for n, at_s in ((0, 100), (1, 350)):
        story.pod(f"ray-{n}", "on-demand-1", at_s, bound_s=at_s + 1, app="ray", labels={"ray.io/cluster": "llm"})
    return Case(story.build(), ("1 gang put to the test",), (), {"atomicity_s_max": 60}, 1, {"gangs": 2})
