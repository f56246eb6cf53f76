"""A gang that must be within one zone is: zone-b, though one GPU was free in zone-a."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    for name, zone in (("on-demand-1", "zone-a"), ("on-demand-2", "zone-b")):
        story.node(name)
        story.label_node(name, "topology.kubernetes.io/zone", zone)
    story.group("gang-z", 2, -4)
    topology = [{"key": "topology.kubernetes.io/zone"}]
    story.change(1, "PodGroup", "gang-z", lambda g: g["spec"].update(schedulingConstraints={"topology": topology}))
    for n in range(2):
        story.pod(f"train-{n}", "on-demand-2", 10, bound_s=11, app="train", group="gang-z")
    return Case(story.build(), ("1 within one domain each",), spec={"atomicity_s_max": 60}, exercised=1)
