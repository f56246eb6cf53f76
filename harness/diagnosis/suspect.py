"""What a rule says of one component: which of its own promises it broke, when first, and to whom."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from harness.verdict import Evidence

LOAD = "the load"
SERVER = "the model server"
GATEWAY = "the gateway"
BETWEEN = "the gateway, or another proxy between clients and servers,"
KUBELET = "the kubelet"
PROBE = "the readiness probe"
DEVICE_PLUGIN = "the device plugin"
AUTOSCALER = "the autoscaler"
METRICS = "the metrics path"
REPLICA_SETS = "the ReplicaSet controller"
ENDPOINTS = "the endpoint controller"
BUDGETS = "the disruption controller"
EVICTION_API = "the Eviction API"
SCHEDULER = "the scheduler"
GANG_CONTROLLER = "the gang's controller"
POD_GARBAGE = "the garbage collector of pods"
DRAIN = "the drain"
PROVISIONER = "the provisioner"
CLOUD = "the cloud"
PICKER = "the endpoint picker"
QUEUES = "Kueue"
TAINT_EVICTION = "the device taint eviction of kube-controller-manager"
KEDA = "KEDA"
NODE = "the start of the node"
WORKLOAD = "the workload's own settings:"
LOST_STREAMS = frozenset({"graceful_drain", "slo", "scale_down", "capacity", "recovery", "requests", "baseline"})
"""Checks that may fail of lost requests, and of replicas that serve nobody."""
LATE_REPLICAS = frozenset({"scale_up", "capacity", "slo", "recovery", "graceful_drain", "baseline"})
"""Checks that may fail because replicas do not come: what is left carries too much, and budgets have no room."""


class Sure(enum.IntEnum):
    """How well the history bears it out. A surer suspect comes before one that is less so."""

    SEEN = 0
    """A component is seen to break its own promise."""
    INFERRED = 1
    """What is seen fits it, and could fit something else."""
    SETTING = 2
    """Every component did as it was told, and what it was told breaks the promise."""
    EFFECT = 3
    """Seen at the end of the chain only."""


@dataclass(frozen=True, slots=True)
class Suspect:
    component: str
    act: str
    """A verb and what follows, with counts: ``sent 56 requests to pods that were already going``."""
    since_ns: int
    """When it first went wrong, not when that was noticed."""
    breaks: frozenset[str]
    """Checks whose promise it can break."""
    sure: Sure = Sure.SEEN
    scope: str = ""
    """Who is hit, and who is not."""
    seen: tuple[Evidence, ...] = ()
    otherwise: str = ""
    """What else it may be, and what would tell the two apart."""
    change: str = ""
    requests: frozenset[int] = field(default_factory=frozenset)
    """Lost or failed requests that it accounts for."""
