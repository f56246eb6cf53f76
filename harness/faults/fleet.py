"""The nodes of a running cluster, as picks see them."""

from __future__ import annotations

from harness.faults.pick import FleetNode
from harness.kube.port import NODE, Json, Kube

GPU = "nvidia.com/gpu"
DISRUPTED_TAINT = "karpenter.sh/disrupted"


def fleet_node(node: Json) -> FleetNode:
    meta = node["metadata"]
    gpus = node.get("status", {}).get("allocatable", {}).get(GPU, "0")
    return FleetNode(meta["name"], dict(meta.get("labels") or {}), int(gpus))


def is_leaving(node: Json) -> bool:
    """Being deleted or drained already: a fault there would prove nothing."""
    return bool(node["metadata"].get("deletionTimestamp")) or has_disrupted_taint(node)


def has_disrupted_taint(node: Json) -> bool:
    return any(taint.get("key") == DISRUPTED_TAINT for taint in node.get("spec", {}).get("taints") or ())


async def read_fleet(kube: Kube) -> tuple[FleetNode, ...]:
    """Nodes that stay, in the API's order."""
    return tuple(fleet_node(node) for node in (await kube.list(NODE)).items if not is_leaving(node))
