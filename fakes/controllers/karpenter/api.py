"""Karpenter's names, and its NodePool and NodeClaim objects as this provider writes them. Pure."""

from __future__ import annotations

from fakes.cloud.cloud import Cloud, Instance
from fakes.config import PoolConfig
from fakes.controllers.objects import condition_of, condition_status, is_terminating, with_condition
from fakes.nodes.labels import CAPACITY_TYPE, NODEPOOL, pool_labels
from fakes.nodes.machine import Machine
from fakes.nodes.node_status import capacity
from harness.kube.port import Json

TERMINATION_FINALIZER = "karpenter.sh/termination"
REGISTERED_LABEL = "karpenter.sh/registered"
INITIALIZED_LABEL = "karpenter.sh/initialized"
UNREGISTERED_TAINT = "karpenter.sh/unregistered"
DISRUPTED_TAINT: Json = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}
EPHEMERAL_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
NODE_CLASS = {"group": "gpu-harness.dev", "kind": "FakeNodeClass", "name": "default"}

LAUNCHED, REGISTERED, INITIALIZED, READY = "Launched", "Registered", "Initialized", "Ready"
DRAINED, INSTANCE_TERMINATING = "Drained", "InstanceTerminating"
INSUFFICIENT_CAPACITY = "InsufficientCapacityError"

SPOT_WEIGHT, ON_DEMAND_WEIGHT = 50, 10


def node_pool(pool: PoolConfig) -> Json:
    """Its limit is what the cloud once had of the pool; that the cloud may have less by now, a launch finds out. The
    label with its own name is no part of its template: Karpenter adds that, and its schema refuses it here."""
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": pool.name},
        "spec": {
            "template": {
                "metadata": {"labels": {k: v for k, v in template_labels(pool).items() if k != NODEPOOL}},
                "spec": {
                    "nodeClassRef": NODE_CLASS,
                    "requirements": [r for r in requirements(pool) if r["key"] != NODEPOOL],
                    "expireAfter": "Never",
                },
            },
            "limits": {"nvidia.com/gpu": str(pool.stock * pool.gpus), "nodes": str(pool.stock)},
            "weight": weight(pool),
            "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"},
        },
    }


def node_claim(pool: PoolConfig, name: str, requests: Json, pool_uid: str | None) -> Json:
    """``requests``: what the pods it is made for ask for; Initialized waits for these resources."""
    meta: Json = {"name": name, "labels": template_labels(pool), "finalizers": [TERMINATION_FINALIZER]}
    if pool_uid:
        owner = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": pool.name, "uid": pool_uid}
        meta["ownerReferences"] = [{**owner, "blockOwnerDeletion": True}]
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": meta,
        "spec": {
            "nodeClassRef": NODE_CLASS,
            "requirements": requirements(pool),
            "resources": {"requests": requests},
            "taints": [],
            "startupTaints": [],
            "expireAfter": "Never",
        },
    }


def template_labels(pool: PoolConfig) -> dict[str, str]:
    """What a NodePool's nodes will have, as far as it is known before there is a node."""
    return pool_labels(pool)


def requirements(pool: PoolConfig) -> list[Json]:
    return [
        {"key": CAPACITY_TYPE, "operator": "In", "values": [pool.capacity_type]},
        {"key": NODEPOOL, "operator": "In", "values": [pool.name]},
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [pool.instance_type]},
        {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [pool.zone]},
    ]


def weight(pool: PoolConfig) -> int:
    """The heavier pool is tried first: spot before on-demand."""
    return SPOT_WEIGHT if pool.capacity_type == "spot" else ON_DEMAND_WEIGHT


def pool_capacity(pool: PoolConfig) -> Json:
    return capacity(Machine("", pool, 0, True))


def pool_of(obj: Json) -> str:
    """The NodePool of a NodeClaim or Node; empty when Karpenter has no part in it."""
    return str((obj["metadata"].get("labels") or {}).get(NODEPOOL, ""))


def instance_of_claim(cloud: Cloud, claim: Json) -> Instance | None:
    """A claim, its node and its instance share one name here."""
    return cloud.instances.get(f"i-{claim['metadata']['name']}")


def is_initialized(claim: Json) -> bool:
    return condition_status(claim, INITIALIZED) == "True"


def lacks_capacity(claim: Json) -> bool:
    found = condition_of(claim, LAUNCHED)
    return found is not None and found["status"] == "False" and found.get("reason") == INSUFFICIENT_CAPACITY


def has_finalizer(obj: Json) -> bool:
    return TERMINATION_FINALIZER in (obj["metadata"].get("finalizers") or ())


def without_finalizer(obj: Json) -> Json:
    kept = [f for f in obj["metadata"].get("finalizers") or () if f != TERMINATION_FINALIZER]
    return {**obj, "metadata": {**obj["metadata"], "finalizers": kept}}


def is_going(obj: Json | None) -> bool:
    return obj is not None and is_terminating(obj)


def with_conditions(claim: Json, news: list[Json], stamp: str) -> Json:
    """The claim's status with these conditions in place, and Ready following from them."""
    status = claim.get("status") or {}
    conditions: list[Json] = list(status.get("conditions") or ())
    for new in news:
        conditions = with_condition(conditions, new, stamp)
    conditions = with_condition(conditions, _ready(conditions), stamp)
    return {**status, "conditions": conditions}


def condition(type: str, status: str, reason: str = "", message: str = "") -> Json:
    return {"type": type, "status": status, "reason": reason or type, "message": message}


def _ready(conditions: list[Json]) -> Json:
    found = {c["type"]: c["status"] for c in conditions}
    parts = [(type, found.get(type, "Unknown")) for type in (LAUNCHED, REGISTERED, INITIALIZED)]
    wrong = ", ".join(f"{type}={status}" for type, status in parts if status != "True")
    if not wrong:
        return condition(READY, "True")
    if any(status == "False" for _, status in parts):
        return condition(READY, "False", "UnhealthyDependents", wrong)
    return condition(READY, "Unknown", "ReconcilingDependents", wrong)
