"""Whether a kubelet takes a pod that was bound to its node. Its refusals end the pod for good."""

from __future__ import annotations

from collections.abc import Iterable

from fakes.controllers.placement import matches_node, tolerated
from fakes.controllers.resources import CPU, MEMORY, PODS, amounts, requested
from fakes.nodes.container_status import ContainerView
from fakes.nodes.devices import AllocationRefused, DeviceManager
from fakes.nodes.labels import GPU_RESOURCE
from harness.kube.port import Json

UNEXPECTED = "UnexpectedAdmissionError"
CRITICAL_PRIORITY = 2_000_000_000


class Refusal(Exception):
    """The reason of the failed pod, and of its event; the message as the event has it."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.message = message


def refuse_under_pressure(pod: Json, conditions: Iterable[str]) -> Refusal | None:
    """Of a node under memory pressure a pod that asks for no memory is refused, under disk or PID pressure every pod;
    not one of critical priority (kubernetes v1.37 pkg/kubelet/eviction/eviction_manager.go, Admit)."""
    met = tuple(conditions)
    if not met or int(pod["spec"].get("priority") or 0) >= CRITICAL_PRIORITY:
        return None
    if met == ("MemoryPressure",):
        if (pod.get("status") or {}).get("qosClass", "BestEffort") != "BestEffort":
            return None
        taint = {"key": "node.kubernetes.io/memory-pressure", "effect": "NoSchedule"}
        if tolerated(taint, pod["spec"].get("tolerations") or ()):
            return None
    return Refusal("Evicted", f"The node had condition: [{' '.join(met)}]. ")


def refuse_by_fit(pod: Json, others: Iterable[Json], node: Json, allocatable: Json) -> Refusal | None:
    """The scheduler's filters that a kubelet repeats: a pod that was bound by name was never asked them. Extended
    resources that the node does not have are no reason, as in a real kubelet."""
    if not matches_node(pod["spec"], node):
        desc = "node(s) didn't match Pod's node affinity/selector"
        return Refusal("NodeAffinity", f"Predicate NodeAffinity failed: {desc}")
    total, asked, used = amounts(allocatable), {**requested(pod), PODS: 1}, {CPU: 0, MEMORY: 0, PODS: 0}
    for other in others:
        held = {**requested(other), PODS: 1}
        for resource in used:
            used[resource] += held.get(resource, 0)
    for resource in (PODS, CPU, MEMORY):
        amount = asked.get(resource, 0)
        if amount and used[resource] + amount > total.get(resource, 0):
            why = f"requested: {amount}, used: {used[resource]}, capacity: {total.get(resource, 0)}"
            return Refusal(f"OutOf{resource}", f"Node didn't have enough resource: {resource}, {why}")
    return None


async def allocate_devices(devices: DeviceManager, pod: Json, views: Iterable[ContainerView]) -> None:
    """All containers' devices or none. Raises ``Refusal``."""
    uid = pod["metadata"]["uid"]
    try:
        for view in views:
            limits = (view.spec.get("resources") or {}).get("limits") or {}
            if wanted := int(limits.get(GPU_RESOURCE, 0)):
                view.devices = await devices.allocate(uid, view.name, wanted)
    except AllocationRefused as error:
        devices.release(uid)
        raise Refusal(UNEXPECTED, str(error)) from error
