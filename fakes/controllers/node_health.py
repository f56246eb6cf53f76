"""What a node's conditions mean for its taints, and for how fast pods may be taken off. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum

from fakes.controllers.objects import condition_status, with_condition
from fakes.controllers.placement import tolerated
from harness.kube.port import Json

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_PRESSURES = {
    "MemoryPressure": "node.kubernetes.io/memory-pressure",
    "DiskPressure": "node.kubernetes.io/disk-pressure",
    "PIDPressure": "node.kubernetes.io/pid-pressure",
    "NetworkUnavailable": "node.kubernetes.io/network-unavailable",
}
NO_SCHEDULE_KEYS = frozenset({NOT_READY, UNREACHABLE, UNSCHEDULABLE, *_PRESSURES.values()})

SILENT_CONDITIONS = ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")

EVICTIONS_PER_S = 0.1
LARGE_ZONE_NODES = 50
EVICTIONS_LARGE_ZONE_PER_S = 0.01
UNHEALTHY_SHARE = 0.55


def ready_status(node: Json) -> str:
    """True, False or Unknown; a node that never said anything is not ready."""
    return condition_status(node, "Ready") or "False"


def no_schedule_keys(node: Json) -> frozenset[str]:
    """Keys of the NoSchedule taints that the node's conditions call for."""
    keys = {key for kind, key in _PRESSURES.items() if condition_status(node, kind) == "True"}
    match ready_status(node):
        case "False":
            keys.add(NOT_READY)
        case "Unknown":
            keys.add(UNREACHABLE)
    if (node.get("spec") or {}).get("unschedulable"):
        keys.add(UNSCHEDULABLE)
    return frozenset(keys)


def with_no_schedule(node: Json, stamp: str) -> list[Json] | None:
    """The node's taints with the condition taints put right; None when they are."""
    wanted = no_schedule_keys(node)
    taints = list((node.get("spec") or {}).get("taints") or [])
    ours = {t["key"] for t in taints if t.get("effect") == "NoSchedule" and t["key"] in NO_SCHEDULE_KEYS}
    if ours == wanted:
        return None
    kept = [t for t in taints if not (t.get("effect") == "NoSchedule" and t["key"] in ours - wanted)]
    return kept + [_taint(key, "NoSchedule", stamp) for key in sorted(wanted - ours)]


def with_no_execute(node: Json, key: str | None, stamp: str) -> list[Json] | None:
    """The node's taints with ``key`` as its only NoExecute taint of ours (None: without); None when they are so."""
    taints = list((node.get("spec") or {}).get("taints") or [])
    ours = {t["key"] for t in taints if t.get("effect") == "NoExecute" and t["key"] in (NOT_READY, UNREACHABLE)}
    wanted = {key} if key else set()
    if ours == wanted:
        return None
    kept = [t for t in taints if not (t.get("effect") == "NoExecute" and t["key"] in ours - wanted)]
    return kept + [_taint(k, "NoExecute", stamp) for k in sorted(wanted - ours)]


def has_no_execute(node: Json) -> bool:
    return any(t["key"] in (NOT_READY, UNREACHABLE) for t in no_execute_taints(node))


def no_execute_taints(node: Json) -> list[Json]:
    return [t for t in (node.get("spec") or {}).get("taints") or [] if t.get("effect") == "NoExecute"]


def _taint(key: str, effect: str, stamp: str) -> Json:
    taint = {"key": key, "effect": effect}
    # Kubernetes stamps these when its controller adds them; the one for a cordon carries the time too.
    return {**taint, "timeAdded": stamp}


def silent_conditions(node: Json, stamp: str) -> list[Json]:
    """All conditions of a node that was not heard of for too long."""
    conditions: list[Json] = list((node.get("status") or {}).get("conditions") or [])
    for kind in SILENT_CONDITIONS:
        old = next((c for c in conditions if c["type"] == kind), None)
        new: Json = {"type": kind, "status": "Unknown"}
        if old is None:
            new |= {"reason": "NodeStatusNeverUpdated", "message": "Kubelet never posted node status."}
            new["lastHeartbeatTime"] = node["metadata"].get("creationTimestamp", stamp)
        elif old["status"] == "Unknown":
            continue
        else:
            new |= {"reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}
            new["lastHeartbeatTime"] = old.get("lastHeartbeatTime", stamp)
        conditions = with_condition(conditions, new, stamp)
    return conditions


class Disruption(Enum):
    NONE = "none"
    PARTIAL = "partial"
    FULL = "full"


def disruption_of(ready: int, not_ready: int) -> Disruption:
    if ready == 0 and not_ready > 0:
        return Disruption.FULL
    if not_ready > 2 and not_ready / (ready + not_ready) >= UNHEALTHY_SHARE:
        return Disruption.PARTIAL
    return Disruption.NONE


def evictions_per_s(state: Disruption, nodes: int, *, all_zones_full: bool) -> float:
    """Nodes per second that may be given up in one zone. When no node of any zone is ready, the fault is likelier
    between them and the control plane than in all of them, so nothing is evicted at all."""
    if all_zones_full:
        return 0.0
    if state is Disruption.PARTIAL:
        return EVICTIONS_LARGE_ZONE_PER_S if nodes > LARGE_ZONE_NODES else 0.0
    return EVICTIONS_PER_S


def zone_of(node: Json) -> str:
    labels = node["metadata"].get("labels") or {}
    return f"{labels.get('topology.kubernetes.io/region', '')}:{labels.get('topology.kubernetes.io/zone', '')}"


def stays_s(taints: Sequence[Json], tolerations: Iterable[Json]) -> float | None:
    """How long a pod may stay under these NoExecute taints, in scenario seconds: 0 at once out, None for ever."""
    listed = list(tolerations)
    used: list[Json] = []
    for taint in taints:
        matching = [t for t in listed if tolerated(taint, [t])]
        if not matching:
            return 0.0
        used += matching
    limits = [max(0.0, float(t["tolerationSeconds"])) for t in used if t.get("tolerationSeconds") is not None]
    return min(limits) if limits else None
