"""A gang that must be within one zone has a member in each of two: its traffic crosses what it must not cross."""

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
    for n in (1, 2):
        story.pod(f"train-{n}", f"on-demand-{n}", 10, bound_s=11, app="train", group="gang-z")
    says = ("gang-z is spread over topology.kubernetes.io/zone zone-a and zone-b, and asked for one",)
    return Case(story.build(), says, spec={"atomicity_s_max": 60}, numbers={"spread_over_domains": 1})
