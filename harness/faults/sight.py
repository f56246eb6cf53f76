"""What the Kubernetes API says of nodes and pods, as signs of faults read it."""

from __future__ import annotations

from collections.abc import Iterable

from harness.faults.fleet import GPU, has_disrupted_taint
from harness.faults.pick import NODE_POOL_LABEL
from harness.faults.port import Ground
from harness.kube.port import LEASE, NODE, NODE_CLAIM, POD, Json, Kube, NotFound


async def nodes_of(kube: Kube) -> dict[str, Json]:
    return {node["metadata"]["name"]: node for node in (await kube.list(NODE)).items}


async def claims_of(kube: Kube) -> dict[str, Json]:
    """Empty on a server without Karpenter."""
    try:
        return {claim["metadata"]["name"]: claim for claim in (await kube.list(NODE_CLAIM)).items}
    except NotFound:
        return {}


async def pods_of(ground: Ground) -> dict[str, Json]:
    """Pods of the run's namespace, by ``namespace/name``."""
    pods = (await ground.kube.list(POD, ground.namespace)).items
    return {f"{ground.namespace}/{pod['metadata']['name']}": pod for pod in pods}


async def renew_times(kube: Kube, namespace: str) -> dict[str, str]:
    """By the Lease's name: the stamp of its last renewal."""
    leases = (await kube.list(LEASE, namespace)).items
    return {lease["metadata"]["name"]: str((lease.get("spec") or {}).get("renewTime", "")) for lease in leases}


def condition(obj: Json, type: str) -> Json:
    """Empty where it has none of that type."""
    found = ((obj.get("status") or {}).get("conditions")) or ()
    return next((c for c in found if c.get("type") == type), {})


def is_ready(obj: Json) -> bool:
    return condition(obj, "Ready").get("status") == "True"


def gpus(node: Json, where: str = "allocatable") -> int | None:
    """None where the status has no key for them."""
    value = ((node.get("status") or {}).get(where) or {}).get(GPU)
    return None if value is None else int(value)


OFFERING_LABEL = "gpu-harness.dev/pool"
"""The pool of our cloud, where one NodePool orders from several."""


def cloud_pool_of(obj: Json) -> str:
    """Of a node or a NodeClaim: whose instance it is."""
    return str((obj["metadata"].get("labels") or {}).get(OFFERING_LABEL) or pool_of(obj))


def pool_of(obj: Json) -> str:
    """Its NodePool."""
    return str((obj["metadata"].get("labels") or {}).get(NODE_POOL_LABEL, ""))


def going(node: Json, claim: Json | None) -> str | None:
    """What shows that a node is being taken out by a controller; None when nothing does."""
    if has_disrupted_taint(node):
        return "taint karpenter.sh/disrupted"
    if node["metadata"].get("deletionTimestamp"):
        return "the Node is being deleted"
    if claim is not None and claim["metadata"].get("deletionTimestamp"):
        return "its NodeClaim is being deleted"
    return None


def container_states(pod: Json) -> Iterable[Json]:
    return ((pod.get("status") or {}).get("containerStatuses")) or ()


def restarts(pod: Json) -> int:
    return sum(int(c.get("restartCount", 0)) for c in container_states(pod))


def ends(pod: Json) -> set[tuple[str, int]]:
    """Reason and exit code with which its containers ended, now or the time before."""
    found: set[tuple[str, int]] = set()
    for container in container_states(pod):
        for state in (container.get("state") or {}, container.get("lastState") or {}):
            if ended := state.get("terminated"):
                found.add((str(ended.get("reason", "")), int(ended.get("exitCode", 0))))
    return found


def waiting_reasons(pod: Json) -> set[str]:
    return {
        str(waiting.get("reason", ""))
        for c in container_states(pod)
        if (waiting := (c.get("state") or {}).get("waiting"))
    }
