"""What a real control plane is given before anything else: Karpenter's kinds, and the way to the metrics APIs."""

from __future__ import annotations

import base64
from collections.abc import Collection
from pathlib import Path

from harness.kube.port import NAMESPACE, SERVICE, Json, Kube, Resource
from harness.stack.addon_objects import API_SERVICE, CRD, read_objects
from harness.stack.component import MODULES
from harness.stack.installing import create, until_true

CLUSTER_ROLE = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", False)

SYSTEM_NAMESPACE = "gpu-harness"
METRICS_SERVICE = "metrics"
METRICS_HOST = f"{METRICS_SERVICE}.{SYSTEM_NAMESPACE}.svc"
"""The name that the API server expects in the metrics server's certificate."""
METRICS_APIS = (
    ("custom.metrics.k8s.io", "v1beta1"), ("custom.metrics.k8s.io", "v1beta2"), ("external.metrics.k8s.io", "v1beta1"),
)  # fmt: skip
HPA_ROLE = "system:controller:horizontal-pod-autoscaler"


async def install_karpenters_kinds(kube: Kube) -> None:
    """Karpenter's own CRDs, so that the server validates what our rules write as it would Karpenter's."""
    crds = read_objects(sorted((MODULES / "karpenter" / "crds").glob("*.yaml")))
    for crd in crds:
        await create(kube, CRD, crd)
    for crd in crds:
        await until_true(kube, CRD, crd["metadata"]["name"], "Established")


async def register_metrics(kube: Kube, port: int, authority: Path, *, aside: Collection[str] = ()) -> None:
    """APIServices that lead to our metrics server on ``port`` of this machine, and wait until they are available.
    Groups in ``aside`` are somebody else's to answer.

    Without kube-proxy no Service address works; one of type ExternalName does, for the aggregator resolves it to a host
    name, keeps the port of the APIService, and still checks the certificate against the Service's own name.
    """
    await create(kube, NAMESPACE, {"metadata": {"name": SYSTEM_NAMESPACE}})
    spec = {"type": "ExternalName", "externalName": "localhost"}
    await create(kube, SERVICE, {"metadata": {"name": METRICS_SERVICE, "namespace": SYSTEM_NAMESPACE}, "spec": spec})
    bundle = base64.b64encode(authority.read_bytes()).decode()
    ours = [(group, version) for group, version in METRICS_APIS if group not in aside]
    for group, version in ours:
        service = {"name": METRICS_SERVICE, "namespace": SYSTEM_NAMESPACE, "port": port}
        spec_of_api = {
            "group": group,
            "version": version,
            "service": service,
            "caBundle": bundle,
            "groupPriorityMinimum": 100,
            "versionPriority": 100 + int(version[-1]),
        }
        await create(kube, API_SERVICE, {"metadata": {"name": f"{version}.{group}"}, "spec": spec_of_api})
    for group, version in ours:
        await until_true(kube, API_SERVICE, f"{version}.{group}", "Available")


async def take_the_autoscalers_pen(kube: Kube) -> None:
    """The planted bug of an autoscaler that reads its metric and changes nothing: its role loses the right to write
    replica counts. (The API server made that role when it started, and does not touch it again.)"""
    role = await kube.get(CLUSTER_ROLE, HPA_ROLE)
    rules = [{**r, "verbs": [v for v in r["verbs"] if v != "update"]} if _scales(r) else r for r in role["rules"]]
    await kube.patch(CLUSTER_ROLE, HPA_ROLE, {"rules": rules})


def _scales(rule: Json) -> bool:
    return any(resource.endswith("/scale") for resource in rule.get("resources", ()))
