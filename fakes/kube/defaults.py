"""What the API server fills in: on every write the defaults of the version (pkg/apis/*/defaults.go of kubernetes
v1.37), and on a create or an update what its registry strategies reset or allocate.

Objects come canonical from ``reading``. A part that is shared with an older version is complete already, and defaulting
finds nothing to write in it.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any

from fakes.kube.kinds import CUSTOM_RESOURCE_DEFINITION, Kind
from fakes.kube.schema import quantity
from harness.kube import port
from harness.kube.port import Json

if TYPE_CHECKING:
    from fakes.kube.store import Store

ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""Of generated names, as Kubernetes draws them: no vowels, so no words."""


def random_suffix(rng: Random, length: int = 5) -> str:
    return "".join(rng.choice(ALPHABET) for _ in range(length))


def set_defaults(obj: Json) -> None:
    """In place."""
    found = _DEFAULTS.get((obj["apiVersion"], obj["kind"]))
    if found is not None:
        found(obj)


def set_status_defaults(obj: Json) -> None:
    """Of a write through the status subresource, whose spec is not the writer's."""
    found = _STATUS_DEFAULTS.get(obj["kind"])
    if found is not None:
        found(obj)


def _pod(obj: Json) -> None:
    _pod_status(obj)
    spec = obj["spec"]
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        spec["terminationGracePeriodSeconds"] = 1
    for field in ("initContainers", "containers"):
        for container in spec.get(field) or []:
            resources = container["resources"]
            if limits := resources.get("limits"):
                requests = resources.get("requests") or {}
                if not limits.keys() <= requests.keys():
                    resources["requests"] = limits | requests
    spec.setdefault("enableServiceLinks", True)
    if spec.get("hostNetwork"):
        for container in [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]:
            for entry in container.get("ports") or []:
                entry.setdefault("hostPort", entry["containerPort"])
    pod_spec(spec)


def _pod_status(obj: Json) -> None:
    status = obj.get("status") or {}
    if status.get("podIP") and not status.get("podIPs"):
        obj["status"] = status | {"podIPs": [{"ip": status["podIP"]}]}


def pod_spec(spec: Json) -> None:
    """Also of pod templates."""
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account and spec.get("serviceAccountName") != spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(field) or []:
            _container(container)
    for volume in spec.get("volumes") or []:
        _volume(volume)


def _container(container: Json) -> None:
    if "imagePullPolicy" not in container:
        container["imagePullPolicy"] = _pull_policy(container.get("image") or "")
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    for entry in container.get("ports") or []:
        entry.setdefault("protocol", "TCP")
    for entry in container.get("env") or []:
        if source := (entry.get("valueFrom") or {}).get("fieldRef"):
            source.setdefault("apiVersion", "v1")
    for field in ("livenessProbe", "readinessProbe", "startupProbe"):
        if probe := container.get(field):
            _probe(probe)
    for handler in (container.get("lifecycle") or {}).values():
        if isinstance(handler, dict) and (get := handler.get("httpGet")):
            _http_get(get)


def _pull_policy(image: str) -> str:
    if "@" in image:
        return "IfNotPresent"
    tag = image.rpartition("/")[2].partition(":")[2]
    return "Always" if tag in ("", "latest") else "IfNotPresent"


def _probe(probe: Json) -> None:
    for field, value in (
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ):
        probe.setdefault(field, value)
    if get := probe.get("httpGet"):
        _http_get(get)
    if grpc := probe.get("grpc"):
        grpc.setdefault("service", "")


def _http_get(get: Json) -> None:
    get.setdefault("path", "/")
    get.setdefault("scheme", "HTTP")


def _volume(volume: Json) -> None:
    if volume.keys() == {"name"}:
        volume["emptyDir"] = {}
    for source in ("secret", "configMap", "downwardAPI", "projected"):
        if volume.get(source) is not None:
            volume[source].setdefault("defaultMode", 420)
    if (host := volume.get("hostPath")) is not None:
        host.setdefault("type", "")
    items = (volume.get("downwardAPI") or {}).get("items") or []
    for part in (volume.get("projected") or {}).get("sources") or []:
        if token := part.get("serviceAccountToken"):
            token.setdefault("expirationSeconds", 3600)
        items = [*items, *((part.get("downwardAPI") or {}).get("items") or [])]
    for item in items:
        if field := item.get("fieldRef"):
            field.setdefault("apiVersion", "v1")


def _deployment(obj: Json) -> None:
    spec = obj["spec"]
    spec.setdefault("replicas", 1)
    strategy = spec["strategy"]
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)
    pod_spec(spec["template"]["spec"])


def _replica_set(obj: Json) -> None:
    spec = obj["spec"]
    spec.setdefault("replicas", 1)
    template = spec.get("template")
    if template is None:
        return
    pod_spec(template["spec"])


def _stateful_set(obj: Json) -> None:
    spec = obj["spec"]
    spec.setdefault("podManagementPolicy", "OrderedReady")
    strategy = spec.setdefault("updateStrategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        strategy.setdefault("rollingUpdate", {}).setdefault("partition", 0)
    kept = {"whenDeleted": "Retain", "whenScaled": "Retain"}
    spec["persistentVolumeClaimRetentionPolicy"] = kept | (spec.get("persistentVolumeClaimRetentionPolicy") or {})
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    if (template := spec.get("template")) is not None:
        pod_spec(template["spec"])


def _service(obj: Json) -> None:
    spec = obj["spec"]
    affinity = spec.setdefault("sessionAffinity", "None")
    if affinity == "None":
        spec.pop("sessionAffinityConfig", None)
    elif affinity == "ClientIP":
        client = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
        if "timeoutSeconds" not in client:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": 10800}}
    kind = spec.setdefault("type", "ClusterIP")
    for entry in spec.get("ports") or []:
        entry.setdefault("protocol", "TCP")
        if entry.get("targetPort") in (0, "", None):
            entry["targetPort"] = entry["port"]
    if kind in ("NodePort", "LoadBalancer") or (kind == "ClusterIP" and spec.get("externalIPs")):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if kind in ("NodePort", "LoadBalancer", "ClusterIP"):
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)


_SCALE_UP: Json = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
_SCALE_DOWN: Json = {"selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}


def _hpa(obj: Json) -> None:
    spec = obj["spec"]
    spec.setdefault("minReplicas", 1)
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    behavior = spec.get("behavior")
    if behavior is not None:
        for direction, rules in (("scaleUp", _SCALE_UP), ("scaleDown", _SCALE_DOWN)):
            given = behavior.get(direction) or {}
            if not rules.keys() <= given.keys():
                fresh = {k: [dict(p) for p in v] if isinstance(v, list) else v for k, v in rules.items()}
                behavior[direction] = fresh | given


def _old_hpa(obj: Json) -> None:
    spec = obj["spec"]
    spec.setdefault("minReplicas", 1)
    notes = obj["metadata"].get("annotations") or {}
    if "targetCPUUtilizationPercentage" not in spec and "autoscaling.alpha.kubernetes.io/metrics" not in notes:
        spec["targetCPUUtilizationPercentage"] = 80


def _namespace(obj: Json) -> None:
    name = obj["metadata"].get("name")
    labels = obj["metadata"].get("labels") or {}
    if name and labels.get("kubernetes.io/metadata.name") != name:
        obj["metadata"]["labels"] = labels | {"kubernetes.io/metadata.name": name}
    if "phase" not in obj["status"]:
        obj["status"] = obj["status"] | {"phase": "Active"}


def _node(obj: Json) -> None:
    status = obj["status"]
    if "capacity" in status and "allocatable" not in status:
        obj["status"] = status | {"allocatable": status["capacity"]}


def _secret(obj: Json) -> None:
    written = obj.pop("stringData", None)
    if written:
        encoded = {k: base64.b64encode(v.encode()).decode() for k, v in written.items()}
        obj["data"] = (obj.get("data") or {}) | encoded
    obj.setdefault("type", "Opaque")


def _priority_class(obj: Json) -> None:
    obj.setdefault("preemptionPolicy", "PreemptLowerPriority")


def _pod_group(obj: Json) -> None:
    obj["spec"].setdefault("disruptionMode", {"single": {}})


def _slice(obj: Json) -> None:
    for entry in obj.get("ports") or []:
        entry.setdefault("name", "")
        entry.setdefault("protocol", "TCP")


def _crd(obj: Json) -> None:
    spec = obj["spec"]
    spec.setdefault("conversion", {"strategy": "None"})
    names = spec["names"]
    if names.get("kind"):
        names.setdefault("singular", names["kind"].lower())
        names.setdefault("listKind", f"{names['kind']}List")


_DEFAULTS: dict[tuple[str, str], Callable[[Json], None]] = {
    ("v1", "Pod"): _pod,
    ("apps/v1", "Deployment"): _deployment,
    ("apps/v1", "ReplicaSet"): _replica_set,
    ("apps/v1", "StatefulSet"): _stateful_set,
    ("v1", "Service"): _service,
    ("autoscaling/v2", "HorizontalPodAutoscaler"): _hpa,
    ("autoscaling/v1", "HorizontalPodAutoscaler"): _old_hpa,
    ("v1", "Namespace"): _namespace,
    ("v1", "Node"): _node,
    ("v1", "Secret"): _secret,
    ("scheduling.k8s.io/v1", "PriorityClass"): _priority_class,
    ("scheduling.k8s.io/v1beta1", "PodGroup"): _pod_group,
    ("discovery.k8s.io/v1", "EndpointSlice"): _slice,
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"): _crd,
}


_STATUS_DEFAULTS: dict[str, Callable[[Json], None]] = {"Pod": _pod_status, "Node": _node}


def prepare_new(kind: Kind, obj: Json, store: Store) -> None:
    """What the strategies do to a new object: no status but their own, and what the server allocates."""
    if kind.custom:
        if kind.status:
            obj.pop("status", None)
    elif kind.status and not kind.status_on_create:
        obj["status"] = kind.type.fields["status"].type.zero()
    match kind.resource:
        case port.POD:
            obj["status"] = {"phase": "Pending", "qosClass": qos_class(obj["spec"])}
            if obj["spec"].get("schedulingGates"):
                obj["status"]["conditions"] = [_gated(store.wall.stamp())]
        case port.NAMESPACE:
            obj["status"] = {"phase": "Active"}
            if "kubernetes" not in (obj["spec"].get("finalizers") or []):
                obj["spec"] = obj["spec"] | {"finalizers": [*(obj["spec"].get("finalizers") or []), "kubernetes"]}
        case crd if crd == CUSTOM_RESOURCE_DEFINITION:
            stored = [v["name"] for v in obj["spec"].get("versions") or [] if v.get("storage")]
            obj["status"] = obj["status"] | {"storedVersions": stored}
        case port.SERVICE:
            _allocate(obj["spec"], store.rng)


def _gated(stamp: str) -> Json:
    return {
        "type": "PodScheduled", "status": "False", "lastTransitionTime": stamp, "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates", "lastProbeTime": None,
    }  # fmt: skip


def _allocate(spec: Json, rng: Random) -> None:
    kind = spec["type"]
    if kind == "ExternalName":
        return
    if "clusterIP" not in spec:
        spec["clusterIP"] = f"10.96.{rng.randrange(1, 256)}.{rng.randrange(1, 255)}"
    spec.setdefault("clusterIPs", [spec["clusterIP"]])
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    if kind in ("NodePort", "LoadBalancer"):
        for entry in spec.get("ports") or []:
            entry.setdefault("nodePort", rng.randrange(30000, 32768))


def prepare_change(kind: Kind, new: Json, old: Json, subresource: str | None) -> None:
    """What survives an update that leaves it out, because the server chose it."""
    if subresource is not None:
        return
    if kind.resource == port.SERVICE and new["spec"] is not old["spec"]:
        spec, before = new["spec"], old["spec"]
        if spec.get("type") != "ExternalName" and before.get("type") != "ExternalName":
            for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
                if field not in spec and field in before:
                    spec[field] = before[field]
            known = {p.get("name", ""): p for p in before.get("ports") or []}
            for entry in spec.get("ports") or []:
                was = known.get(entry.get("name", ""))
                if was and "nodePort" in was and spec["type"] in ("NodePort", "LoadBalancer"):
                    entry.setdefault("nodePort", was["nodePort"])
    elif kind.resource == port.NAMESPACE:
        new["spec"] = old["spec"]


def qos_class(spec: Json) -> str:
    """Only cpu and memory count; a pod that asks for GPUs alone is BestEffort."""
    containers = [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]
    named, guaranteed = False, True
    for container in containers:
        resources = container.get("resources") or {}
        limits, requests = _counted(resources.get("limits")), _counted(resources.get("requests"))
        for name in ("cpu", "memory"):
            named = named or name in limits or name in requests
            guaranteed = guaranteed and name in limits and requests.get(name, limits[name]) == limits[name]
    return "Guaranteed" if named and guaranteed else "Burstable" if named else "BestEffort"


def _counted(amounts: Any) -> Json:
    """Without the zeros, which ask for nothing."""
    return {k: v for k, v in (amounts or {}).items() if k in ("cpu", "memory") and _number(v)}


def _number(text: Any) -> Any:
    try:
        return quantity.number(str(text))
    except ValueError:
        return 0
