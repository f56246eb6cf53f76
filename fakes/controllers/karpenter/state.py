"""What the provisioner makes of the cluster: which pods need room, which nodes have some or soon will. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from fakes.controllers.gang import group_name
from fakes.controllers.karpenter.api import (
    EPHEMERAL_TAINTS,
    UNREGISTERED_TAINT,
    is_initialized,
    lacks_capacity,
    offering_of,
)
from fakes.controllers.karpenter.plan import GroupKey
from fakes.controllers.objects import (
    condition_of,
    controller_of,
    is_active,
    is_terminating,
    name_of,
    namespace_of,
    node_of,
)
from fakes.controllers.placement import NodeRoom, holds_room
from harness.kube.port import Json


def is_provisionable(pod: Json) -> bool:
    """The scheduler has looked at it and found no node, and it waits for no preemption."""
    if node_of(pod) or not is_active(pod) or is_of_daemon_set(pod):
        return False
    if (pod.get("status") or {}).get("nominatedNodeName"):
        return False
    scheduled = condition_of(pod, "PodScheduled")
    return scheduled is not None and scheduled["status"] == "False" and scheduled.get("reason") == "Unschedulable"


def is_of_daemon_set(pod: Json) -> bool:
    return (controller_of(pod) or {}).get("kind") == "DaemonSet"


def leaving_nodes(nodes: Iterable[Json], claims: Iterable[Json]) -> frozenset[str]:
    """Nodes that are being terminated: nothing new is planned onto them, and their pods need room elsewhere."""
    return frozenset(name_of(o) for o in (*nodes, *claims) if is_terminating(o))


def pods_needing_room(pods: Iterable[Json], leaving: frozenset[str]) -> list[Json]:
    """Pending pods, and the pods of leaving nodes that nobody has evicted yet. Of an evicted one its replacement
    counts, not itself."""
    return [
        pod
        for pod in pods
        if is_provisionable(pod) or (node_of(pod) in leaving and is_active(pod) and not is_of_daemon_set(pod))
    ]


def bound_members(pods: Iterable[Json], leaving: frozenset[str]) -> Counter[GroupKey]:
    return Counter(
        (namespace_of(pod), name)
        for pod in pods
        if (name := group_name(pod)) and node_of(pod) and node_of(pod) not in leaving and is_active(pod)
    )


def rooms(
    nodes: Sequence[Json],
    claims: Iterable[Json],
    pods: Iterable[Json],
    capacities: Mapping[str, Json],
    going: frozenset[str] = frozenset(),
) -> list[NodeRoom]:
    """Nodes as they are; those not yet initialized, or not even there, as they will be; not those that leave or are
    ``going`` to. ``capacities``: what a node of each of the cloud's pools has."""
    by_name = {name_of(c): c for c in claims}
    found: dict[str, NodeRoom] = {}
    for node in sorted(nodes, key=name_of):
        claim = by_name.get(name_of(node))
        found[name_of(node)] = NodeRoom.of(node if claim is None or is_initialized(claim) else _soon(node, capacities))
    for claim in sorted(by_name.values(), key=lambda c: (c["metadata"].get("creationTimestamp", ""), name_of(c))):
        if name_of(claim) not in found and not lacks_capacity(claim):
            found[name_of(claim)] = NodeRoom.of(_soon(claim, capacities))
    for pod in pods:
        room = found.get(node_of(pod))
        if room is not None and holds_room(pod):
            room.hold(pod)
    leaving = leaving_nodes(nodes, by_name.values()) | going
    return [room for name, room in found.items() if name not in leaving]


def _soon(obj: Json, capacities: Mapping[str, Json]) -> Json:
    """A node under way: with all it will have, and without the taints of its start."""
    passing = (UNREGISTERED_TAINT, *EPHEMERAL_TAINTS)
    taints = [t for t in (obj.get("spec") or {}).get("taints") or () if t["key"] not in passing]
    labels = {"kubernetes.io/hostname": name_of(obj), **(obj["metadata"].get("labels") or {})}
    return {
        "metadata": {**obj["metadata"], "labels": labels},
        "spec": {"taints": taints},
        "status": {"allocatable": capacities.get(offering_of(obj), {})},
    }
