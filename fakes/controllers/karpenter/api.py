"""Karpenter's names, and its NodePool and NodeClaim objects as this provider writes them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from fakes.cloud.cloud import Cloud, Instance
from fakes.config import PoolConfig
from fakes.controllers.karpenter.nodepools import HASH_ANNOTATION, HASH_VERSION, HASH_VERSION_ANNOTATION, NEVER, Rules
from fakes.controllers.objects import condition_of, condition_status, is_terminating, with_condition
from fakes.nodes.labels import CAPACITY_TYPE, NODEPOOL, OFFERING, pool_labels
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
DRAINED, VOLUMES_DETACHED, INSTANCE_TERMINATING = "Drained", "VolumesDetached", "InstanceTerminating"
CONSOLIDATABLE, DISRUPTION_REASON = "Consolidatable", "DisruptionReason"
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
DEADLINE_ANNOTATION = "karpenter.sh/nodeclaim-termination-timestamp"
INSUFFICIENT_CAPACITY = "InsufficientCapacityError"

SPOT_WEIGHT, ON_DEMAND_WEIGHT = 50, 10


def node_pool(name: str, pools: Sequence[PoolConfig]) -> Json:
    """Its limit is what the cloud once had of its pools; that the cloud may have less by now, a launch finds out. The
    label with its own name is no part of its template: Karpenter adds that, and its schema refuses it here."""
    gpus, nodes = sum(p.stock * p.gpus for p in pools), sum(p.stock for p in pools)
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {
            "template": {
                "metadata": {"labels": {"nvidia.com/gpu.present": "true"}},
                "spec": {"nodeClassRef": NODE_CLASS, "requirements": requirements(pools), "expireAfter": "Never"},
            },
            "limits": {"nvidia.com/gpu": str(gpus), "nodes": str(nodes)},
            "weight": max(weight(p) for p in pools),
            "disruption": {
                "consolidationPolicy": "WhenEmpty",
                "consolidateAfter": "Never",
                "budgets": [{"nodes": "10%"}],
            },
        },
    }


def node_claim(pool: PoolConfig, name: str, requests: Json, owner: Json | None, rules: Rules | None = None) -> Json:
    """``requests``: what the pods it is made for ask for; Initialized waits for these resources. ``owner`` is the
    NodePool, whose ``rules`` the claim takes over."""
    labels = template_labels(pool) if rules is None else rules.node_labels(template_labels(pool))
    meta: Json = {"name": name, "labels": labels, "finalizers": [TERMINATION_FINALIZER]}
    spec: Json = {
        "nodeClassRef": NODE_CLASS,
        "requirements": requirements([pool]),
        "resources": {"requests": requests},
        "taints": [],
        "startupTaints": [],
        "expireAfter": NEVER,
    }
    if owner is not None:
        reference = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": owner["metadata"]["name"]}
        meta["ownerReferences"] = [{**reference, "uid": owner["metadata"]["uid"], "blockOwnerDeletion": True}]
    if rules is not None:
        labels[NODEPOOL] = rules.name
        meta["annotations"] = {**rules.annotations, HASH_ANNOTATION: rules.hash, HASH_VERSION_ANNOTATION: HASH_VERSION}
        spec |= {"expireAfter": rules.expire_after, "taints": list(rules.taints)}
        spec["startupTaints"] = list(rules.startup_taints)
        if rules.grace is not None:
            spec["terminationGracePeriod"] = rules.grace
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": meta, "spec": spec}


def template_labels(pool: PoolConfig) -> dict[str, str]:
    """What a NodePool's nodes will have, as far as it is known before there is a node."""
    return pool_labels(pool)


def requirements(pools: Sequence[PoolConfig]) -> list[Json]:
    wanted = {
        CAPACITY_TYPE: [p.capacity_type for p in pools],
        OFFERING: [p.name for p in pools],
        "node.kubernetes.io/instance-type": [p.instance_type for p in pools],
        "topology.kubernetes.io/zone": [p.zone for p in pools],
    }
    return [{"key": key, "operator": "In", "values": sorted(set(values))} for key, values in wanted.items()]


def weight(pool: PoolConfig) -> int:
    """The heavier pool is tried first: spot before on-demand."""
    return SPOT_WEIGHT if pool.capacity_type == "spot" else ON_DEMAND_WEIGHT


def pool_capacity(pool: PoolConfig) -> Json:
    return capacity(Machine("", pool, 0, True))


def pool_of(obj: Json) -> str:
    """The NodePool of a NodeClaim or Node; empty when Karpenter has no part in it."""
    return str((obj["metadata"].get("labels") or {}).get(NODEPOOL, ""))


def offering_of(obj: Json) -> str:
    """Which of the cloud's pools a NodeClaim or Node is from; empty when it is from none."""
    return str((obj["metadata"].get("labels") or {}).get(OFFERING, ""))


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


def with_conditions(claim: Json, news: list[Json], stamp: str, cleared: Collection[str] = ()) -> Json:
    """The claim's status with these conditions in place, without those ``cleared``, and Ready following from them."""
    status = claim.get("status") or {}
    conditions: list[Json] = [c for c in status.get("conditions") or () if c["type"] not in cleared]
    for new in news:
        conditions = with_condition(conditions, new, stamp)
    conditions = with_condition(conditions, _ready(conditions), stamp)
    return {**status, "conditions": conditions}


def condition(type: str, status: str, reason: str = "", message: str = "") -> Json:
    return {"type": type, "status": status, "reason": reason or type, "message": message}


def _ready(conditions: list[Json]) -> Json:
    found = {c["type"]: c["status"] for c in conditions}
    # The latest to change come first (operatorpkg, status/condition_set.go), and they change in this order.
    parts = [(type, found.get(type, "Unknown")) for type in (INITIALIZED, REGISTERED, LAUNCHED)]
    wrong = ", ".join(f"{type}={status}" for type, status in parts if status != "True")
    if not wrong:
        return condition(READY, "True")
    if any(status == "False" for _, status in parts):
        return condition(READY, "False", "UnhealthyDependents", wrong)
    return condition(READY, "Unknown", "ReconcilingDependents", wrong)
