"""A gang must be within one zone, and nobody recorded in which zone its node is."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-2")
    story.group("gang-z", 2, -4)
    topology = [{"key": "topology.kubernetes.io/zone"}]
    story.change(1, "PodGroup", "gang-z", lambda g: g["spec"].update(schedulingConstraints={"topology": topology}))
    for n in range(2):
        story.pod(f"train-{n}", "on-demand-2", 10, bound_s=11, app="train", group="gang-z")
    says = ("must be within one topology.kubernetes.io/zone, and that of on-demand-2 was never recorded",)
    return Case(story.build(), says, spec={"atomicity_s_max": 60}, exercised=1)
