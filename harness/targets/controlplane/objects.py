"""What a real control plane is given before anything else: Karpenter's kinds, and the way to the metrics APIs."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path

import yaml

from harness.errors import TargetError
from harness.kube.port import NAMESPACE, SERVICE, AlreadyExists, ApiError, Json, Kube, Resource
from harness.stack.component import MODULES

CRD = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False)
API_SERVICE = Resource("apiregistration.k8s.io", "v1", "apiservices", "APIService", False)
CLUSTER_ROLE = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", False)

SYSTEM_NAMESPACE = "gpu-harness"
METRICS_SERVICE = "metrics"
METRICS_HOST = f"{METRICS_SERVICE}.{SYSTEM_NAMESPACE}.svc"
"""The name that the API server expects in the metrics server's certificate."""
METRICS_APIS = (
    ("custom.metrics.k8s.io", "v1beta1"), ("custom.metrics.k8s.io", "v1beta2"), ("external.metrics.k8s.io", "v1beta1"),
)  # fmt: skip
HPA_ROLE = "system:controller:horizontal-pod-autoscaler"
WITHIN_S = 30.0


async def install_karpenters_kinds(kube: Kube) -> None:
    """Karpenter's own CRDs, so that the server validates what our rules write as it would Karpenter's."""
    crds = [crd for file in sorted((MODULES / "karpenter" / "crds").glob("*.yaml")) for crd in _objects(file)]
    for crd in crds:
        await _create(kube, CRD, crd)
    for crd in crds:
        await _until_true(kube, CRD, crd["metadata"]["name"], "Established")


async def register_metrics(kube: Kube, port: int, authority: Path) -> None:
    """APIServices that lead to our metrics server on ``port`` of this machine, and wait until they are available.

    Without kube-proxy no Service address works; one of type ExternalName does, for the aggregator resolves it to a host
    name, keeps the port of the APIService, and still checks the certificate against the Service's own name.
    """
    await _create(kube, NAMESPACE, {"metadata": {"name": SYSTEM_NAMESPACE}})
    spec = {"type": "ExternalName", "externalName": "localhost"}
    await _create(kube, SERVICE, {"metadata": {"name": METRICS_SERVICE, "namespace": SYSTEM_NAMESPACE}, "spec": spec})
    bundle = base64.b64encode(authority.read_bytes()).decode()
    for group, version in METRICS_APIS:
        service = {"name": METRICS_SERVICE, "namespace": SYSTEM_NAMESPACE, "port": port}
        spec_of_api = {
            "group": group,
            "version": version,
            "service": service,
            "caBundle": bundle,
            "groupPriorityMinimum": 100,
            "versionPriority": 100 + int(version[-1]),
        }
        await _create(kube, API_SERVICE, {"metadata": {"name": f"{version}.{group}"}, "spec": spec_of_api})
    for group, version in METRICS_APIS:
        await _until_true(kube, API_SERVICE, f"{version}.{group}", "Available")


async def take_the_autoscalers_pen(kube: Kube) -> None:
    """The planted bug of an autoscaler that reads its metric and changes nothing: its role loses the right to write
    replica counts. (The API server made that role when it started, and does not touch it again.)"""
    role = await kube.get(CLUSTER_ROLE, HPA_ROLE)
    rules = [{**r, "verbs": [v for v in r["verbs"] if v != "update"]} if _scales(r) else r for r in role["rules"]]
    await kube.patch(CLUSTER_ROLE, HPA_ROLE, {"rules": rules})


def _scales(rule: Json) -> bool:
    return any(resource.endswith("/scale") for resource in rule.get("resources", ()))


def _objects(file: Path) -> list[Json]:
    return [obj for obj in yaml.safe_load_all(file.read_text()) if obj]


async def _create(kube: Kube, resource: Resource, obj: Json) -> None:
    with contextlib.suppress(AlreadyExists):
        await kube.create(resource, obj)


async def _until_true(kube: Kube, resource: Resource, name: str, condition: str) -> None:
    async def look() -> str:
        found = (await kube.get(resource, name)).get("status") or {}
        for c in found.get("conditions") or ():
            if c["type"] == condition:
                return "" if c["status"] == "True" else f"{c.get('reason', '')}: {c.get('message', '')}"
        return f"no condition {condition} yet"

    await until_nothing_is_wrong(look, f"{resource.kind} {name} did not become {condition}")


async def until_nothing_is_wrong(look: Callable[[], Awaitable[str]], failure: str) -> None:
    """``look`` says what is still wrong, in words; TargetError with the last of them after ``WITHIN_S``."""
    wrong = ""
    try:
        async with asyncio.timeout(WITHIN_S):
            while wrong := await _said(look):
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise TargetError(f"{failure} within {WITHIN_S:g} s: {wrong}") from None


async def _said(look: Callable[[], Awaitable[str]]) -> str:
    try:
        return await look()
    except (ApiError, ConnectionError) as error:
        return str(error)
