"""The defaults that clients see on an object they have just written."""

from __future__ import annotations

import base64
from collections.abc import Callable
from random import Random

from harness.kube.port import Json

ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""Of generated names, as Kubernetes draws them: no vowels, so no words."""


def random_suffix(rng: Random, length: int = 5) -> str:
    return "".join(rng.choice(ALPHABET) for _ in range(length))


def set_defaults(obj: Json, rng: Random) -> None:
    """In place, on an object that has passed the structural check."""
    found = _DEFAULTS.get(obj["kind"])
    if found is not None:
        found(obj, rng)


def keep_allocated(new: Json, old: Json) -> None:
    """What the server chose when the object was made survives an update that leaves it out."""
    if new["kind"] != "Service" or not isinstance(new.get("spec"), dict):
        return
    for field in ("clusterIP", "clusterIPs"):
        if field not in new["spec"] and field in old["spec"]:
            new["spec"][field] = old["spec"][field]


def _pod(obj: Json, rng: Random) -> None:
    spec = obj.setdefault("spec", {})
    pod_spec(spec)
    _service_account(spec, rng)
    _tolerations(spec)
    obj.setdefault("status", {})


def pod_spec(spec: Json) -> None:
    """Also of pod templates."""
    spec.setdefault("restartPolicy", "Always")
    if spec.get("terminationGracePeriodSeconds") is None:
        spec["terminationGracePeriodSeconds"] = 30
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
    if spec.get("serviceAccountName"):
        spec.setdefault("serviceAccount", spec["serviceAccountName"])
    for field in ("initContainers", "containers"):
        for container in spec.get(field) or []:
            _container(container)
    for volume in spec.get("volumes") or []:
        if set(volume) == {"name"}:
            volume["emptyDir"] = {}


def _container(container: Json) -> None:
    image = container.get("image") or ""
    tag = image.rpartition("/")[2].partition(":")[2]
    container.setdefault("imagePullPolicy", "IfNotPresent" if tag not in ("", "latest") else "Always")
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    resources = container.setdefault("resources", {})
    if limits := resources.get("limits"):
        resources["requests"] = limits | (resources.get("requests") or {})
    for entry in container.get("ports") or []:
        entry.setdefault("protocol", "TCP")
    for field in ("livenessProbe", "readinessProbe", "startupProbe"):
        if probe := container.get(field):
            _probe(probe)


def _probe(probe: Json) -> None:
    for field, value in (
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ):
        probe.setdefault(field, value)
    if get := probe.get("httpGet"):
        get.setdefault("path", "/")
        get.setdefault("scheme", "HTTP")


def _service_account(spec: Json, rng: Random) -> None:
    """What the ServiceAccount admission adds: clients rely on ``volumes`` being a list."""
    spec.setdefault("serviceAccountName", "default")
    spec["serviceAccount"] = spec["serviceAccountName"]
    volumes = spec.get("volumes") or []
    if spec.get("automountServiceAccountToken") is False:
        return
    if any(v.get("name", "").startswith("kube-api-access-") for v in volumes):
        return
    name = f"kube-api-access-{random_suffix(rng)}"
    sources = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [
            {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
    ]  # fmt: skip
    spec["volumes"] = [*volumes, {"name": name, "projected": {"sources": sources, "defaultMode": 420}}]
    mount = {"name": name, "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
    for container in [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]:
        container["volumeMounts"] = [*(container.get("volumeMounts") or []), dict(mount)]


def _tolerations(spec: Json) -> None:
    tolerations = list(spec.get("tolerations") or [])
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(_tolerates_execute(t, key) for t in tolerations):
            tolerations.append({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300})
    spec["tolerations"] = tolerations


def _tolerates_execute(toleration: Json, key: str) -> bool:
    everything = not toleration.get("key") and toleration.get("operator") == "Exists"
    return (everything or toleration.get("key") == key) and toleration.get("effect") in (None, "", "NoExecute")


def _template(spec: Json) -> None:
    template = spec.setdefault("template", {})
    template.setdefault("metadata", {})
    pod_spec(template.setdefault("spec", {}))


def _deployment(obj: Json, rng: Random) -> None:
    spec = obj.setdefault("spec", {})
    if spec.get("replicas") is None:
        spec["replicas"] = 1
    strategy = spec.setdefault("strategy", {})
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)
    _template(spec)


def _replica_set(obj: Json, rng: Random) -> None:
    spec = obj.setdefault("spec", {})
    if spec.get("replicas") is None:
        spec["replicas"] = 1
    _template(spec)
    labels = (spec["template"].get("metadata") or {}).get("labels")
    if labels and not obj["metadata"].get("labels"):
        obj["metadata"]["labels"] = dict(labels)


def _service(obj: Json, rng: Random) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    spec.setdefault("internalTrafficPolicy", "Cluster")
    for entry in spec.get("ports") or []:
        entry.setdefault("protocol", "TCP")
        entry.setdefault("targetPort", entry.get("port"))
    if "clusterIP" not in spec and spec["type"] != "ExternalName":
        spec["clusterIP"] = f"10.96.{rng.randrange(0, 256)}.{rng.randrange(1, 255)}"
    if spec.get("clusterIP"):
        spec.setdefault("clusterIPs", [spec["clusterIP"]])
        spec.setdefault("ipFamilies", ["IPv4"])
        spec.setdefault("ipFamilyPolicy", "SingleStack")
    obj.setdefault("status", {}).setdefault("loadBalancer", {})


def _hpa(obj: Json, rng: Random) -> None:
    spec = obj.setdefault("spec", {})
    if spec.get("minReplicas") is None:
        spec["minReplicas"] = 1
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


def _namespace(obj: Json, rng: Random) -> None:
    name = obj["metadata"]["name"]
    labels = obj["metadata"].get("labels") or {}
    obj["metadata"]["labels"] = labels | {"kubernetes.io/metadata.name": name}
    obj.setdefault("spec", {}).setdefault("finalizers", ["kubernetes"])
    obj.setdefault("status", {}).setdefault("phase", "Active")


def _secret(obj: Json, rng: Random) -> None:
    written = obj.pop("stringData", None)
    if written:
        encoded = {k: base64.b64encode(v.encode()).decode() for k, v in written.items()}
        obj["data"] = (obj.get("data") or {}) | encoded
    obj.setdefault("type", "Opaque")


def _priority_class(obj: Json, rng: Random) -> None:
    obj.setdefault("preemptionPolicy", "PreemptLowerPriority")


_DEFAULTS: dict[str, Callable[[Json, Random], None]] = {
    "Pod": _pod,
    "Deployment": _deployment,
    "ReplicaSet": _replica_set,
    "Service": _service,
    "HorizontalPodAutoscaler": _hpa,
    "Namespace": _namespace,
    "Secret": _secret,
    "PriorityClass": _priority_class,
}


def qos_class(spec: Json) -> str:
    """Only cpu and memory count; a pod that asks for GPUs alone is BestEffort."""
    containers = [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]
    named, guaranteed = False, True
    for container in containers:
        resources = container.get("resources") or {}
        limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
        for name in ("cpu", "memory"):
            named = named or name in limits or name in requests
            guaranteed = guaranteed and name in limits and requests.get(name, limits[name]) == limits[name]
    return "Guaranteed" if named and guaranteed else "Burstable" if named else "BestEffort"
