"""A gang that must be within one zone was spread over two; later a node of the same name came in the right zone."""

from __future__ import annotations

from cases import Case
from story import Story

ZONE = "topology.kubernetes.io/zone"


def case() -> Case:
    story = Story()
    for name, zone in (("on-demand-1", "zone-a"), ("on-demand-2", "zone-b")):
        story.node(name)
        story.label_node(name, ZONE, zone)
    story.group("gang-z", 2, -4)
    topology = [{"key": ZONE}]
    story.change(1, "PodGroup", "gang-z", lambda g: g["spec"].update(schedulingConstraints={"topology": topology}))
    for n in (1, 2):
        story.pod(f"train-{n}", f"on-demand-{n}", 10, bound_s=11, app="train", group="gang-z")
    for n in (1, 2):
        story.evict(100, f"train-{n}", None)
        story.end(101, f"train-{n}")
    story.node_gone("on-demand-2", 200)
    story.node("on-demand-2", 300)
    story.change(301, "Node", "on-demand-2", lambda n: n["metadata"]["labels"].update({ZONE: "zone-a"}))
    says = ("gang-z is spread over topology.kubernetes.io/zone zone-a and zone-b, and asked for one",)
    return Case(story.build(), says, spec={"atomicity_s_max": 60}, numbers={"spread_over_domains": 1})
