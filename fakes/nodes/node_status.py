"""The Node object a kubelet registers, and the status it keeps posting. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from fakes.nodes.images import IMAGE_BYTES
from fakes.nodes.labels import node_labels
from fakes.nodes.machine import Machine
from harness.kube.port import Json

KUBELET_VERSION = "v1.37.2"
UNREGISTERED_TAINT = {"key": "karpenter.sh/unregistered", "effect": "NoExecute"}
NOT_READY_TAINT = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
EVICTION_RESERVE_KI = 102_400
"""The memory that a kubelet's default hard eviction threshold keeps out of allocatable."""

NETWORK_NOT_READY = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady"

_PRESSURES = {
    ("MemoryPressure", False): ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("MemoryPressure", True): ("KubeletHasInsufficientMemory", "kubelet has insufficient memory available"),
    ("DiskPressure", False): ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("DiskPressure", True): ("KubeletHasDiskPressure", "kubelet has disk pressure"),
    ("PIDPressure", False): ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("PIDPressure", True): ("KubeletHasInsufficientPID", "kubelet has insufficient PID available"),
}


def node_object(machine: Machine, status: Json) -> Json:
    """A provisioned node starts with Karpenter's taint, and with the one that the API server's admission gives to
    every Node that is not Ready; Karpenter and the node lifecycle controller take them away."""
    spec: Json = {"providerID": machine.provider_id}
    if machine.provisioned:
        spec["taints"] = [UNREGISTERED_TAINT, NOT_READY_TAINT]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": machine.name,
            "labels": node_labels(machine.pool, machine.name),
            "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
        },
        "spec": spec,
        "status": status,
    }


def node_status(
    machine: Machine, gpus: tuple[int, int] | None, images: Iterable[str], conditions: list[Json], boot_id: str
) -> Json:
    """``gpus``: capacity and allocatable as the device manager has them; None: no keys."""
    has, gives = gpus if gpus is not None else (None, None)
    return {
        "capacity": _resources(machine, has, 0),
        "allocatable": _resources(machine, gives, EVICTION_RESERVE_KI),
        "conditions": conditions,
        "addresses": [
            {"type": "InternalIP", "address": machine.address},
            {"type": "Hostname", "address": machine.name},
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": machine.port}},
        "nodeInfo": {
            "machineID": boot_id.replace("-", ""),
            "systemUUID": boot_id,
            "bootID": boot_id,
            "kernelVersion": "6.8.0-hollow",
            "osImage": "hollow node",
            "containerRuntimeVersion": "hollow://1",
            "kubeletVersion": KUBELET_VERSION,
            "kubeProxyVersion": "",
            "operatingSystem": "linux",
            "architecture": "amd64",
        },
        "images": [{"names": [name], "sizeBytes": IMAGE_BYTES} for name in sorted(images)],
    }


def node_conditions(pressures: Collection[str], not_ready: str, since: Mapping[str, str], now: str) -> list[Json]:
    """``not_ready``: why the node is not Ready, empty when it is; ``since``: when each condition took its value."""
    rows = [(type, on, *said) for (type, on), said in _PRESSURES.items() if on is (type in pressures)]
    if not_ready:
        rows.append(("Ready", False, "KubeletNotReady", not_ready))
    else:
        rows.append(("Ready", True, "KubeletReady", "kubelet is posting ready status"))
    return [
        {
            "type": type,
            "status": str(status),
            "lastHeartbeatTime": now,
            "lastTransitionTime": since[type],
            "reason": reason,
            "message": message,
        }
        for type, status, reason, message in rows
    ]


def capacity(machine: Machine) -> Json:
    """What the machine has, its GPUs included, whether a plugin has told of them or not."""
    pool = machine.pool
    return {
        "cpu": str(pool.cpu),
        "ephemeral-storage": "536870912000",
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "0",
        "memory": f"{pool.memory_gib * 1024 * 1024}Ki",
        "nvidia.com/gpu": str(pool.gpus),
        "pods": "110",
    }


def allocatable(machine: Machine) -> Json:
    """What pods may have of the machine, GPUs apart."""
    return _resources(machine, None, EVICTION_RESERVE_KI)


def _resources(machine: Machine, gpus: int | None, reserved_ki: int) -> Json:
    found = capacity(machine)
    found["memory"] = f"{machine.pool.memory_gib * 1024 * 1024 - reserved_ki}Ki"
    if gpus is None or machine.pool.gpus == 0:
        del found["nvidia.com/gpu"]
    else:
        found["nvidia.com/gpu"] = str(gpus)
    return found
