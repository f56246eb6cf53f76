"""What admission plugins do on a real cluster: namespaces must exist, priorities are resolved."""

from __future__ import annotations

from fakes.kube.defaults import qos_class
from fakes.kube.status import failure, forbidden, not_found, qualified
from fakes.kube.store import Store
from harness.kube import port
from harness.kube.port import Json, Resource


def check_namespace(store: Store, resource: Resource, namespace: str, name: str) -> None:
    if not resource.namespaced:
        return
    found = store.find(port.NAMESPACE, "", namespace)
    if found is None:
        raise not_found(port.NAMESPACE, namespace)
    if found.object["metadata"].get("deletionTimestamp"):
        why = f"unable to create new content in namespace {namespace} because it is being terminated"
        cause = {"reason": "NamespaceTerminating", "message": f"namespace {namespace} is being terminated",
                 "field": "metadata.namespace"}  # fmt: skip
        details = {"name": name, "group": resource.group, "kind": resource.plural, "causes": [cause]}
        raise failure(403, "Forbidden", f'{qualified(resource)} "{name}" is forbidden: {why}', details)


def admit_pod(store: Store, obj: Json) -> None:
    """Priority, quality of service and the status of a pod that nobody has seen yet."""
    spec = obj["spec"]
    _resolve_priority(store, obj["metadata"].get("name", ""), spec)
    obj["status"] = {"phase": "Pending", "qosClass": qos_class(spec)}


def _resolve_priority(store: Store, name: str, spec: Json) -> None:
    wanted = spec.get("priorityClassName")
    chosen: Json | None = None
    if wanted:
        found = store.find(port.PRIORITY_CLASS, "", wanted)
        if found is None:
            raise forbidden(port.POD, name, f"no PriorityClass with name {wanted} was found")
        chosen = found.object
    else:
        defaults = [s.object for s in store.items(port.PRIORITY_CLASS) if s.object.get("globalDefault")]
        if defaults:
            chosen = min(defaults, key=lambda c: c.get("value", 0))
            spec["priorityClassName"] = chosen["metadata"]["name"]
    spec["priority"] = chosen.get("value", 0) if chosen else 0
    spec["preemptionPolicy"] = (chosen or {}).get("preemptionPolicy", "PreemptLowerPriority")
