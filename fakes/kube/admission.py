"""What admission plugins do on a real cluster: namespaces must exist, pods get account, priority and tolerations."""

from __future__ import annotations

from fakes.kube.defaults import random_suffix
from fakes.kube.kinds import Kind
from fakes.kube.status import failure, forbidden, not_found, qualified
from fakes.kube.store import Store
from harness.kube import port
from harness.kube.port import Json, Resource

GROUP_PROTECTION = "scheduling.k8s.io/podgroup-protection"
"""Keeps a PodGroup until no pod belongs to it; taken off by ``deletion``."""
_TOKEN_MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


GROUP_PROTECTION = "scheduling.k8s.io/podgroup-protection"


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
        details: Json = {"name": name, "kind": resource.plural, "causes": [cause]}
        if resource.group:
            details["group"] = resource.group
        raise failure(403, "Forbidden", f'{qualified(resource)} "{name}" is forbidden: {why}', details)


def admit(store: Store, kind: Kind, obj: Json) -> None:
    """Of a new object, in place."""
    if kind.resource == port.POD:
        spec = obj["spec"]
        _service_account(store, obj)
        default_tolerations(spec)
        _priority(store, obj["metadata"].get("name", ""), spec)
    elif kind.resource == port.NODE:
        _not_ready(obj)
    elif kind.resource == port.POD_GROUP:
        _group_priority(store, obj)
        _protect(obj)


def _service_account(store: Store, obj: Json) -> None:
    """Clients rely on ``volumes`` being a list."""
    spec, meta = obj["spec"], obj["metadata"]
    if "kubernetes.io/config.mirror" in (meta.get("annotations") or {}):
        return
    name = spec.setdefault("serviceAccountName", "default")
    spec["serviceAccount"] = name
    account = store.find(port.SERVICE_ACCOUNT, meta["namespace"], name)
    if account is None:
        why = f'error looking up service account {meta["namespace"]}/{name}: serviceaccount "{name}" not found'
        raise forbidden(port.POD, meta["name"], why)
    wanted = spec.get("automountServiceAccountToken", account.object.get("automountServiceAccountToken", True))
    containers = [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]
    bare = [c for c in containers if not any(m["mountPath"] == _TOKEN_MOUNT for m in c.get("volumeMounts") or [])]
    if not wanted or not bare:
        return
    volume = next((v["name"] for v in spec.get("volumes") or [] if v["name"].startswith("kube-api-access-")), None)
    if volume is None:
        volume = f"kube-api-access-{random_suffix(store.rng)}"
        spec["volumes"] = [*(spec.get("volumes") or []), {"name": volume, "projected": _token_sources()}]
    for container in bare:
        mount = {"name": volume, "readOnly": True, "mountPath": _TOKEN_MOUNT}
        container["volumeMounts"] = [*(container.get("volumeMounts") or []), mount]


def _token_sources() -> Json:
    field = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    sources = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": field}]}},
    ]
    return {"sources": sources, "defaultMode": 420}


def default_tolerations(spec: Json) -> None:
    """For five minutes a pod stands its node's silence, unless it says otherwise."""
    tolerations = list(spec.get("tolerations") or [])
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(_tolerates_execute(t, key) for t in tolerations):
            tolerations.append({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300})
    if tolerations != spec.get("tolerations"):
        spec["tolerations"] = tolerations


def _tolerates_execute(toleration: Json, key: str) -> bool:
    everything = not toleration.get("key") and toleration.get("operator") == "Exists"
    return (everything or toleration.get("key") == key) and toleration.get("effect") in (None, "", "NoExecute")


def _priority(store: Store, name: str, spec: Json) -> None:
    chosen = _priority_class(store, spec.get("priorityClassName"))
    if chosen is None and spec.get("priorityClassName"):
        raise forbidden(port.POD, name, f"no PriorityClass with name {spec['priorityClassName']} was found")
    value = chosen.get("value", 0) if chosen else 0
    policy = (chosen or {}).get("preemptionPolicy", "PreemptLowerPriority")
    if spec.get("priority", value) != value:
        why = f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; "
        raise forbidden(
            port.POD, name, why + f"priority admission controller computed {value} from the given PriorityClass name"
        )
    if spec.get("preemptionPolicy", policy) != policy:
        why = f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be provided in pod spec; "
        raise forbidden(
            port.POD, name, why + f"priority admission controller computed {policy} from the given PriorityClass name"
        )
    if chosen and not spec.get("priorityClassName"):
        spec["priorityClassName"] = chosen["metadata"]["name"]
    spec["priority"], spec["preemptionPolicy"] = value, policy


def _priority_class(store: Store, name: str | None) -> Json | None:
    if name:
        found = store.find(port.PRIORITY_CLASS, "", name)
        return found.object if found else None
    defaults = [s.object for s in store.items(port.PRIORITY_CLASS) if s.object.get("globalDefault")]
    return min(defaults, key=lambda c: c.get("value", 0)) if defaults else None


def _group_priority(store: Store, obj: Json) -> None:
    spec = obj["spec"]
    chosen = _priority_class(store, spec.get("priorityClassName"))
    if chosen is None and spec.get("priorityClassName"):
        why = f"no PriorityClass with name {spec['priorityClassName']} was found"
        raise forbidden(port.POD_GROUP, obj["metadata"]["name"], why)
    if chosen and not spec.get("priorityClassName"):
        spec["priorityClassName"] = chosen["metadata"]["name"]
    spec["priority"] = chosen.get("value", 0) if chosen else 0
    held = obj["metadata"].get("finalizers") or []
    if GROUP_PROTECTION not in held:
        obj["metadata"]["finalizers"] = [*held, GROUP_PROTECTION]


def _protect(obj: Json) -> None:
    """A PodGroup stays while pods of it are at work."""
    finalizers = obj["metadata"].get("finalizers") or []
    if GROUP_PROTECTION not in finalizers:
        obj["metadata"] = obj["metadata"] | {"finalizers": [*finalizers, GROUP_PROTECTION]}


def _not_ready(obj: Json) -> None:
    """Nobody is scheduled to a new node before it has been seen ready.

    A node that says it is ready as it is made is taken at its word, so that worlds can begin with nodes that are there.
    """
    conditions = obj["status"].get("conditions") or []
    if any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions):
        return
    taints = obj["spec"].get("taints") or []
    mark = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    if not any(t.get("key") == mark["key"] and t.get("effect") == mark["effect"] for t in taints):
        obj["spec"] = obj["spec"] | {"taints": [*taints, mark]}
