"""The objects of the scenarios, small and the same everywhere."""

from __future__ import annotations

from typing import Any

from harness.kube.port import Json

APP = {"app": "web"}


def pod_spec(image: str = "app:v1", *, probed: bool = True, gpus: int = 0, grace_s: int = 30, **more: Any) -> Json:
    container: Json = {"name": "app", "image": image, "ports": [{"name": "http", "containerPort": 8000}]}
    if probed:
        probe = {"httpGet": {"path": "/health", "port": 8000}, "periodSeconds": 1, "failureThreshold": 1}
        container["readinessProbe"] = probe
    limits = {**more.pop("limits", {}), **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    requests = {**more.pop("requests", {}), **limits}
    if requests:
        container["resources"] = {"limits": limits, "requests": requests}
    base = {"terminationGracePeriodSeconds": grace_s, "automountServiceAccountToken": False}
    return {**base, "containers": [container], **more}


def pod(name: str, *, labels: Json | None = None, annotations: Json | None = None, **spec: Any) -> Json:
    metadata: Json = {"name": name, "labels": labels or APP}
    if annotations:
        metadata["annotations"] = annotations
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec(**spec)}


def deployment(
    name: str = "web", replicas: int = 3, *, strategy: Json | None = None, labels: Json | None = None,
    top: Json | None = None, annotations: Json | None = None, **spec: Any,
) -> Json:  # fmt: skip
    """``top`` goes beside replicas and template; ``spec`` is the pods'."""
    labels = labels or {"app": name}
    metadata: Json = {"labels": labels}
    if annotations:
        metadata["annotations"] = annotations
    body: Json = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": metadata, "spec": pod_spec(**spec)},
        **(top or {}),
    }
    if strategy:
        body["strategy"] = strategy
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": body}


def rolling(surge: int | str, unavailable: int | str) -> Json:
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}


def replica_set(name: str = "web", replicas: int = 3, labels: Json | None = None, **spec: Any) -> Json:
    labels = labels or {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod_spec(**spec)}
    body = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name}, "spec": body}


def stateful(name: str, replicas: int, **spec: Any) -> Json:
    template = {"metadata": {"labels": {"app": name}}, "spec": pod_spec(**spec)}
    body = {"replicas": replicas, "serviceName": name, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name}, "spec": body}


def budget(name: str = "web", labels: Json | None = None, **spec: Any) -> Json:
    spec = {"selector": {"matchLabels": labels or APP}, **spec}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": spec}


def service(name: str = "web", selector: Json | None = None, **spec: Any) -> Json:
    ports = [{"name": "http", "port": 80, "targetPort": "http"}]
    body: Json = {"ports": ports, **spec}
    if selector is not None:
        body["selector"] = selector
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": body}


def pods_metric(value: str, name: str = "queue") -> Json:
    return {
        "type": "Pods",
        "pods": {"metric": {"name": name}, "target": {"type": "AverageValue", "averageValue": value}},
    }


def hpa(*metrics: Json, low: int = 1, high: int = 10, behavior: Json | None = None, target: str = "web") -> Json:
    spec: Json = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target},
        "minReplicas": low, "maxReplicas": high, "metrics": list(metrics),
    }  # fmt: skip
    if behavior:
        spec["behavior"] = behavior
    return {
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": target}, "spec": spec,
    }  # fmt: skip


def priority_class(name: str, value: int, **more: Any) -> Json:
    head = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return {**head, "metadata": {"name": name}, "value": value, **more}


def pod_group(name: str, min_count: int, **spec: Any) -> Json:
    policy = {"schedulingPolicy": {"gang": {"minCount": min_count}}, **spec}
    return {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": {"name": name}, "spec": policy}


def no_execute_toleration(key: str, seconds: int) -> Json:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
