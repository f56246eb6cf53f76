"""The Node object a kubelet registers, and the status it keeps posting. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from fakes.nodes.devices import Devices
from fakes.nodes.images import IMAGE_BYTES
from fakes.nodes.labels import node_labels
from fakes.nodes.machine import Machine
from harness.kube.port import Json

KUBELET_VERSION = "v1.37.2"
UNREGISTERED_TAINT = {"key": "karpenter.sh/unregistered", "effect": "NoExecute"}
NOT_READY_TAINT = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
EVICTION_RESERVE_KI = 102_400
"""The memory that a kubelet's default hard eviction threshold keeps out of allocatable."""

_PRESSURES = (
    ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)


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
    machine: Machine, devices: Devices, images: Iterable[str], conditions: list[Json], boot_id: str
) -> Json:
    return {
        "capacity": _resources(machine, devices, 0),
        "allocatable": _resources(machine, devices, EVICTION_RESERVE_KI),
        "conditions": conditions,
        "addresses": [
            {"type": "InternalIP", "address": machine.address},
            {"type": "Hostname", "address": machine.name},
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
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


def node_conditions(ready: bool, since: str, ready_since: str, now: str) -> list[Json]:
    """``since``: when the kubelet started; ``ready_since``: when Ready took its present value."""
    rows = [(type, False, reason, message, since) for type, reason, message in _PRESSURES]
    if ready:
        rows.append(("Ready", True, "KubeletReady", "kubelet is posting ready status", ready_since))
    else:
        why = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady"
        rows.append(("Ready", False, "KubeletNotReady", why, ready_since))
    return [
        {
            "type": type,
            "status": str(status),
            "lastHeartbeatTime": now,
            "lastTransitionTime": transition,
            "reason": reason,
            "message": message,
        }
        for type, status, reason, message, transition in rows
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


def _resources(machine: Machine, devices: Devices, reserved_ki: int) -> Json:
    found = capacity(machine)
    found["memory"] = f"{machine.pool.memory_gib * 1024 * 1024 - reserved_ki}Ki"
    if not (devices.registered and devices.count):
        del found["nvidia.com/gpu"]
    return found
