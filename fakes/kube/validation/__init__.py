"""What the API server refuses with 422: the rules that people and controllers really run into."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fakes.kube.names import label_problems
from fakes.kube.status import Cause
from fakes.kube.validation import autoscalers, others, pods, workloads
from fakes.kube.validation.metadata import metadata
from harness.kube.port import Json

_CHECKS: dict[str, Callable[[Json], Iterator[Cause]]] = {
    "Pod": pods.pod,
    "Deployment": workloads.deployment,
    "ReplicaSet": workloads.replica_set,
    "StatefulSet": workloads.replica_set,
    "PodDisruptionBudget": workloads.budget,
    "HorizontalPodAutoscaler": autoscalers.autoscaler,
    "Service": others.service,
    "ConfigMap": others.config_map,
    "Secret": others.secret,
    "Node": others.node,
    "Event": others.event,
    "Lease": others.lease,
    "EndpointSlice": others.endpoint_slice,
    "PriorityClass": others.priority_class,
    "PodGroup": others.pod_group,
    "CustomResourceDefinition": others.definition,
}
_CHANGES: dict[str, Callable[[Json, Json], Iterator[Cause]]] = {
    "Pod": pods.pod_change,
    "Deployment": workloads.selector_change,
    "ReplicaSet": workloads.selector_change,
    "StatefulSet": workloads.selector_change,
    "Service": others.service_change,
    "ConfigMap": others.data_change,
    "Secret": others.data_change,
    "Node": others.node_change,
    "EndpointSlice": others.slice_change,
    "PriorityClass": others.priority_change,
}
_STATUS: dict[str, Callable[[Json], Iterator[Cause]]] = {"Deployment": workloads.deployment_status}


def validate(obj: Json) -> list[Cause]:
    check = _CHECKS.get(obj["kind"])
    return [*metadata(obj), *(check(obj) if check else ())]


def validate_change(new: Json, old: Json, subresource: str | None = None) -> list[Cause]:
    """What may not change once it is written; of a status, what it may not say."""
    if subresource == "status":
        check = _STATUS.get(new["kind"])
        return list(check(new)) if check else []
    change = _CHANGES.get(new["kind"]) if subresource is None else None
    return list(change(new, old)) if change else []


def warnings_of(obj: Json) -> list[str]:
    """What is taken, and yet worth a word to who wrote it."""
    if obj["kind"] == "Pod" and label_problems(obj["metadata"]["name"]):
        why = "this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended"
        return [f"metadata.name: {why}: [must not contain dots]"]
    return []


__all__ = ["validate", "validate_change", "warnings_of"]
