"""The least body of every kind that both servers take, and where it goes."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

CONTAINER: Json = {"name": "main", "image": "registry.example/app:1"}
LABELS = {"app": "a"}
TEMPLATE: Json = {"metadata": {"labels": LABELS}, "spec": {"containers": [CONTAINER]}}
SELECTOR: Json = {"matchLabels": LABELS}


def namespaced(group: str, plural: str) -> str:
    base = f"/apis/{group}" if "/" in group else f"/api/{group}"
    return f"{base}/namespaces/{{ns}}/{plural}"


def cluster(group: str, plural: str) -> str:
    return f"/apis/{group}/{plural}" if "/" in group else f"/api/{group}/{plural}"


PODS = namespaced("v1", "pods")
CONFIG_MAPS = namespaced("v1", "configmaps")
SECRETS = namespaced("v1", "secrets")
SERVICES = namespaced("v1", "services")
ACCOUNTS = namespaced("v1", "serviceaccounts")
EVENTS = namespaced("v1", "events")
NEW_EVENTS = namespaced("events.k8s.io/v1", "events")
LEASES = namespaced("coordination.k8s.io/v1", "leases")
DEPLOYMENTS = namespaced("apps/v1", "deployments")
REPLICA_SETS = namespaced("apps/v1", "replicasets")
HPAS = namespaced("autoscaling/v2", "horizontalpodautoscalers")
OLD_HPAS = namespaced("autoscaling/v1", "horizontalpodautoscalers")
PDBS = namespaced("policy/v1", "poddisruptionbudgets")
SLICES = namespaced("discovery.k8s.io/v1", "endpointslices")
POD_GROUPS = namespaced("scheduling.k8s.io/v1beta1", "podgroups")
NODES = cluster("v1", "nodes")
NAMESPACES = cluster("v1", "namespaces")
PRIORITY_CLASSES = cluster("scheduling.k8s.io/v1", "priorityclasses")
CRDS = cluster("apiextensions.k8s.io/v1", "customresourcedefinitions")


def named(name: str, **rest: Any) -> Json:
    return {"metadata": {"name": name}, **rest}


def pod(name: str = "a", **spec: Any) -> Json:
    return {"metadata": {"name": name, "labels": LABELS}, "spec": {"containers": [CONTAINER], **spec}}


def deployment(name: str = "a", **spec: Any) -> Json:
    return named(name, spec={"selector": SELECTOR, "template": TEMPLATE, **spec})


def config_map(name: str = "a", **data: str) -> Json:
    return named(name, data=data or {"k": "v"})


def service(name: str = "a", **spec: Any) -> Json:
    return named(name, spec={"selector": LABELS, "ports": [{"port": 80}], **spec})


def hpa(name: str = "a", **spec: Any) -> Json:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}
    return named(name, spec={"scaleTargetRef": target, "maxReplicas": 3, **spec})


def pdb(name: str = "a", **spec: Any) -> Json:
    return named(name, spec={"selector": SELECTOR, **(spec or {"minAvailable": 1})})


def pod_group(name: str = "a", **spec: Any) -> Json:
    return named(name, spec={"schedulingPolicy": {"gang": {"minCount": 2}}, **spec})


KINDS: dict[str, tuple[str, Json]] = {
    "Pod": (PODS, pod()),
    "ConfigMap": (CONFIG_MAPS, config_map()),
    "Secret": (SECRETS, named("a", stringData={"k": "v"})),
    "Service": (SERVICES, service()),
    "ServiceAccount": (ACCOUNTS, named("a")),
    "Event": (EVENTS, named("a", involvedObject={"kind": "Pod", "name": "a", "namespace": "{ns}"}, reason="R",
                            message="m", type="Normal", firstTimestamp="2026-01-01T00:00:00Z",
                            lastTimestamp="2026-01-01T00:00:00Z", count=1, source={"component": "c"})),
    "events.k8s.io Event": (NEW_EVENTS, named("a", regarding={"kind": "Pod", "name": "a", "namespace": "{ns}"},
                            reason="R", note="m", type="Normal", eventTime="2026-01-01T00:00:00.000000Z", action="Act",
                            reportingController="example.com/c", reportingInstance="c-1")),
    "Lease": (LEASES, named("a", spec={"holderIdentity": "n", "leaseDurationSeconds": 40,
                                       "renewTime": "2026-01-01T00:00:00.000000Z"})),
    "Deployment": (DEPLOYMENTS, deployment()),
    "ReplicaSet": (REPLICA_SETS, deployment()),
    "HorizontalPodAutoscaler": (HPAS, hpa()),
    "autoscaling/v1 HorizontalPodAutoscaler": (OLD_HPAS, hpa()),
    "PodDisruptionBudget": (PDBS, pdb()),
    "EndpointSlice": (SLICES, named("a", addressType="IPv4", ports=[{"port": 80}],
                                    endpoints=[{"addresses": ["10.1.2.3"], "conditions": {"ready": True}}])),
    "PodGroup": (POD_GROUPS, pod_group()),
    "Node": (NODES, {"metadata": {"name": "{ns}-n"}}),
    "Namespace": (NAMESPACES, {"metadata": {"name": "{ns}-n"}}),
    "PriorityClass": (PRIORITY_CLASSES, {"metadata": {"name": "{ns}-p"}, "value": 7}),
}  # fmt: skip


def name_of(body: Json) -> str:
    return str(body["metadata"]["name"])
