"""Hundreds of seeded, mutated requests: every answer is a proper one, none is a crash of ours, none hangs."""

from __future__ import annotations

import asyncio
import json
from random import Random
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from fakes.kube.codec import clone
from harness.kube.port import RESOURCES, Json, PatchType, Resource

if TYPE_CHECKING:
    from conftest import Served

CONTAINER: Json = {
    "name": "c",
    "image": "x:1",
    "ports": [{"containerPort": 8000, "name": "http"}],
    "env": [{"name": "A", "value": "1"}],
    "resources": {"limits": {"nvidia.com/gpu": "1", "cpu": "500m"}},
    "readinessProbe": {"httpGet": {"path": "/health", "port": 8000}},
    "lifecycle": {"preStop": {"sleep": {"seconds": 10}}},
}
TEMPLATE: Json = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [CONTAINER]}}
SELECTOR: Json = {"matchLabels": {"app": "a"}, "matchExpressions": [{"key": "app", "operator": "Exists"}]}
BODIES: dict[str, Json] = {
    "Pod": {
        "spec": TEMPLATE["spec"]
        | {"nodeName": "n", "tolerations": [{"operator": "Exists"}], "volumes": [{"name": "v"}]}
    },
    "Deployment": {
        "spec": {"replicas": 2, "selector": SELECTOR, "template": TEMPLATE, "strategy": {"type": "RollingUpdate"}}
    },
    "ReplicaSet": {"spec": {"replicas": 2, "selector": SELECTOR, "template": TEMPLATE}},
    "Service": {"spec": {"selector": {"app": "a"}, "ports": [{"port": 80, "targetPort": "http"}]}},
    "Node": {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}, "status": {"conditions": [{"type": "Ready"}]}},
    "PodDisruptionBudget": {"spec": {"maxUnavailable": "25%", "selector": SELECTOR}},
    "HorizontalPodAutoscaler": {
        "spec": {
            "scaleTargetRef": {"kind": "Deployment", "name": "a"},
            "maxReplicas": 3,
            "metrics": [{"type": "Pods", "pods": {"metric": {"name": "q"}, "target": {"averageValue": "2"}}}],
        }
    },
    "PodGroup": {"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}},
    "Event": {"involvedObject": {"kind": "Pod", "name": "a"}, "reason": "r", "lastTimestamp": "2026-11-29T12:00:00Z"},
    "EndpointSlice": {"addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": True}}]},
    "Secret": {"stringData": {"a": "b"}},
    "Lease": {"spec": {"holderIdentity": "n", "renewTime": "2026-11-29T12:00:00.000000Z"}},
}
JUNK: tuple[Any, ...] = (
    None, "", "x" * 300, "é\ud800", 0, -1, 10**30, 1.5, True, [], {}, [None], {"": None}, [[]], {"$patch": "delete"},
    "$patch", {"key": {"deep": [1, {"a": []}]}}, ["a", 1], "25%", "2026-13-45T99:99:99Z",
)  # fmt: skip
QUERIES = (
    *[""] * 3, "?limit=1", "?dryRun=All", "?fieldManager=f", "?labelSelector=app", "?fieldSelector=x=y",
    "?gracePeriodSeconds=0", "?watch=true&timeoutSeconds=1&resourceVersion=1",
)  # fmt: skip
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def mutated(value: Any, rng: Random, depth: int = 0) -> Any:
    """Now and then something else in place of a value, a missing key, or a new one."""
    if rng.random() < 0.02 + 0.01 * depth:
        return rng.choice(JUNK)
    if isinstance(value, dict):
        found = {k: mutated(v, rng, depth + 1) for k, v in value.items() if rng.random() > 0.03}
        if rng.random() < 0.05:
            found[rng.choice(("finalizers", "labels", "status", "spec", "x", "$retainKeys", "name"))] = rng.choice(JUNK)
        return found
    if isinstance(value, list):
        return [mutated(v, rng, depth + 1) for v in value for _ in range(rng.choice((1, 1, 1, 0, 2)))]
    return value


def body_of(resource: Resource, name: str, rng: Random) -> Any:
    meta: Json = {"name": name, "labels": {"app": "a"}, "annotations": {"k": "v"}}
    if rng.random() < 0.2:
        meta["finalizers"] = ["example.com/hold"]
    whole = {"metadata": meta} | clone(BODIES.get(resource.kind, {"spec": {"a": 1}}))
    return mutated(whole, rng) if rng.random() < 0.8 else whole


def json_patch(rng: Random) -> Any:
    paths = (
        "/spec",
        "/metadata/labels/app",
        "/metadata",
        "/spec/containers/0/image",
        "/status/conditions/-",
        "",
        "/x/y",
        "bad",
    )
    operations = ("add", "remove", "replace", "test", "move", "copy", "jump")
    return [
        {"op": rng.choice(operations), "path": rng.choice(paths), "from": rng.choice(paths), "value": rng.choice(JUNK)}
        for _ in range(rng.randrange(3))
    ]


def request_of(rng: Random) -> tuple[str, str, bytes | None, dict[str, str]]:
    resource, name = rng.choice(RESOURCES), rng.choice(("a", "b", "c"))
    namespace = rng.choice(("default", "default", "kube-system", "none")) if resource.namespaced else None
    sub = rng.choice((None, None, None, "status", "scale", "eviction", "binding", "odd"))
    method = rng.choice(("GET", "POST", "POST", "PUT", "PATCH", "PATCH", "DELETE"))
    on_item = method in ("PUT", "PATCH", "DELETE") or (method == "GET" and rng.random() < 0.5) or sub is not None
    if method == "DELETE" and rng.random() < 0.02:
        on_item = False
    path = resource.path(namespace, name if on_item else None, sub if on_item else None)
    headers = {"Content-Type": "application/json"} | ({"Accept": TABLE} if rng.random() < 0.2 else {})
    body: Any = body_of(resource, name, rng)
    if method == "PATCH":
        kind = rng.choice((*PatchType, "application/apply-patch+yaml"))
        headers["Content-Type"] = kind
        body = json_patch(rng) if kind == PatchType.JSON else body
    elif method == "DELETE":
        body = rng.choice(
            (None, {"gracePeriodSeconds": 0}, {"gracePeriodSeconds": 0}, {"propagationPolicy": "Orphan"}, *JUNK)
        )
    query = rng.choice(QUERIES)
    if method != "GET" and "watch" in query:
        query = ""
    data = None if method == "GET" or body is None else json.dumps(body).encode()
    return method, path + query, data, headers


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_no_request_breaks_the_server(served: Served, seed: int) -> None:
    rng = Random(seed)
    statuses: dict[int, int] = {}
    async with aiohttp.ClientSession(served.url) as http, asyncio.timeout(60):
        for _ in range(400):
            method, path, data, headers = request_of(rng)
            async with http.request(method, path, data=data, headers=headers) as answer:
                if "watch=true" in path and answer.status == 200:
                    continue
                body = json.loads(await answer.read())
            statuses[answer.status] = statuses.get(answer.status, 0) + 1
            assert answer.status != 500 or "more than one PodDisruptionBudget" in body["message"], (
                method,
                path,
                data,
                body,
            )
            assert answer.status < 400 or (body["kind"], body["code"]) == ("Status", answer.status)
        for resource in RESOURCES:
            for accept in ("application/json", TABLE):
                async with http.get(resource.path(), headers={"Accept": accept}) as answer:
                    assert answer.status == 200, await answer.text()
                    await answer.read()
    assert {200, 201, 400, 404, 405} <= set(statuses), statuses
