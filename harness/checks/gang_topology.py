"""Where the members of a gang are, for gangs that must be within one domain: a rack, a zone, an NVLink domain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.checks.gang_groups import Group
from harness.checks.units import listed
from harness.history.lives import ByName, Json, Life, going, labels_of, lives, node_of, terminal
from harness.history.tables import ObjectEvent

if TYPE_CHECKING:
    from harness.history.reader import History


@dataclass(frozen=True, slots=True)
class Apart:
    """The first moment at which members of one gang were in more than one of the domains that it names."""

    group: Group
    key: str
    domains: tuple[str, ...]
    event: ObjectEvent

    def __str__(self) -> str:
        return f"{self.group.name} is spread over {self.key} {listed(list(self.domains))}, and asked for one"


def constrained(group: Group) -> str:
    """The node label of which all members must share a value; empty where it asks for none.

    kubernetes v1.37: PodGroup ``spec.schedulingConstraints.topology``, of which there may be one.
    """
    spec: Json = group.object.last.get("spec", {}) if group.object else {}
    topology = (spec.get("schedulingConstraints") or {}).get("topology") or ()
    return str(topology[0].get("key", "")) if topology else ""


def spread(history: History, group: Group) -> Apart | None:
    if not (key := constrained(group)):
        return None
    nodes = ByName(lives(history.objects, "Node"))
    events = sorted((event for member in group.members for event in member.seen), key=lambda e: e.index)
    for event in events:
        held = [nodes.at(node_of(pod), event.t_ns) for member in group.members if (pod := _holding(member, event))]
        there = {str(labels_of(node.last).get(key) or "") if node else "" for node in held}
        if len(there) > 1:
            return Apart(group, key, tuple(sorted(domain or "(no such label)" for domain in there)), event)
    return None


def unplaced(history: History, group: Group) -> list[str]:
    """Nodes of members of which nobody recorded in which domain they are."""
    key = constrained(group)
    nodes = {node.name for node in lives(history.objects, "Node") if labels_of(node.last).get(key)}
    return sorted({node for member in group.members if (node := node_of(member.last))} - nodes)


def _holding(member: Life, event: ObjectEvent) -> Json | None:
    if member.gone is not None and member.gone.index <= event.index:
        return None
    pod = next((e.object for e in reversed(member.seen) if e.index <= event.index), None)
    return pod if pod is not None and node_of(pod) and not terminal(pod) and not going(pod) else None
