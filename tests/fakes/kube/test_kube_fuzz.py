"""Hundreds of seeded, mutated requests: every answer is a proper one, none is a crash of ours, none hangs."""

from __future__ import annotations

import asyncio
import json
import os
from random import Random
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from yarl import URL

from fakes.kube import Store
from fakes.kube.codec import clone
from fakes.kube.deletion import is_finished
from harness.kube.port import NAMESPACE, RESOURCES, Json, PatchType, Resource

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


ODD_PATHS = (
    "/", "/api", "/apis", "/api/v1/", "/apis//v1", "/api/v1/namespaces//pods", "/apis/apps/v1/namespaces/default",
    "/api/v1/namespaces/default/pods/a/status/more", "/api/v1/namespaces/default/pods/%2e%2e", "/api/v1/nodes/%00",
    "/api/v1/namespaces/default/pods/a/log?tailLines=-1", "/openapi/v3/apis/apps/v1", "/openapi/v2", "/version/x",
    "/apis/events.k8s.io/v1/events", "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers/a",
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "/healthz/ping", "/api/v1/pods/a", "/metrics",
)  # fmt: skip
SECOND_SHAPES = (
    Resource("events.k8s.io", "v1", "events", "Event", True),
    Resource("autoscaling", "v1", "horizontalpodautoscalers", "HorizontalPodAutoscaler", True),
    Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False),
)
ACCEPTS = (
    None, None, None, TABLE, "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "*/*", "text/html", "",
    "application/json;as=Table;v=v9;g=meta.k8s.io", "application/json;q=0.1,", ";;;",
)  # fmt: skip
TYPES = (
    *["application/json"] * 12, "application/yaml", "application/vnd.kubernetes.protobuf", "text/plain",
    "application/xml",
)  # fmt: skip
ODD_QUERIES = (
    "limit=-1", "limit=x", "continue=abc", "resourceVersion=x", "resourceVersion=99999999", "labelSelector=a in (",
    "resourceVersionMatch=Exact", "labelSelector=,,", "fieldSelector=a", "fieldValidation=Strict", "fieldValidation=x",
    "force=true", "dryRun=x", "propagationPolicy=x", "gracePeriodSeconds=x", "gracePeriodSeconds=-3", "follow=true",
    "includeObject=x", "fieldManager=" + "x" * 200, "pretty=true", "sendInitialEvents=true", "%zz=1", "a" * 500,
)  # fmt: skip


def spoilt(data: bytes, rng: Random) -> bytes:
    """A few bytes changed, cut off or doubled."""
    found = bytearray(data)
    for _ in range(rng.randrange(1, 6)):
        if not found:
            break
        place = rng.randrange(len(found))
        match rng.randrange(4):
            case 0:
                found[place] = rng.randrange(256)
            case 1:
                del found[place:]
            case 2:
                found[place:place] = found[place : place + 8]
            case _:
                found[place:place] = rng.choice((b"{", b"}", b"[", b'"', b"null", b"k8s\x00"))
    return bytes(found)


def request_of(rng: Random) -> tuple[str, str, bytes | None, dict[str, str]]:
    resource, name = rng.choice((*RESOURCES, *RESOURCES, *SECOND_SHAPES)), rng.choice(("a", "b", "c"))
    namespace = rng.choice(("default", "default", "kube-system", "none")) if resource.namespaced else None
    sub = rng.choice((None, None, None, "status", "scale", "eviction", "binding", "odd"))
    method = rng.choice(("GET", "POST", "POST", "PUT", "PATCH", "PATCH", "DELETE"))
    on_item = method in ("PUT", "PATCH", "DELETE") or (method == "GET" and rng.random() < 0.5) or sub is not None
    if method == "DELETE" and rng.random() < 0.02:
        on_item = False
    path = resource.path(namespace, name if on_item else None, sub if on_item else None)
    headers = {"Content-Type": rng.choice(TYPES)}
    if (accept := rng.choice(ACCEPTS)) is not None:
        headers["Accept"] = accept
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
    if data is not None and rng.random() < 0.1:
        data = spoilt(data, rng)
    if rng.random() < 0.05:
        path = rng.choice(ODD_PATHS)
        query = "" if "?" in path else query
    if rng.random() < 0.1 and "watch" not in query:
        query += ("&" if "?" in path + query else "?") + rng.choice(ODD_QUERIES)
    return method, path + query, data, headers


REQUESTS = int(os.environ.get("FUZZ", "1500"))


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_no_request_breaks_the_server(served: Served, seed: int) -> None:
    rng = Random(seed)
    statuses: dict[int, int] = {}
    async with aiohttp.ClientSession(served.url, auto_decompress=False) as http:
        for number in range(REQUESTS // 3):
            asked = request_of(rng)
            async with asyncio.timeout(20):
                status = await answered(http, *asked)
            statuses[status] = statuses.get(status, 0) + 1
            if number % 250 == 0:
                check_store(served.store)
        check_store(served.store)
        for resource in RESOURCES:
            for accept in ("application/json", TABLE):
                async with http.get(resource.path(), headers={"Accept": accept}) as answer:
                    assert answer.status == 200, await answer.text()
                    await answer.read()
    assert {200, 201, 400, 404, 405, 409, 415, 422} <= set(statuses), statuses


async def answered(
    http: aiohttp.ClientSession, method: str, path: str, data: bytes | None, headers: dict[str, str]
) -> int:
    """The status of an answer that is a proper one."""
    url = URL(http_path(path), encoded=True)
    async with http.request(method, url, data=data, headers=headers) as answer:
        raw = await answer.read()
        is_json = answer.content_type == "application/json"
    what = (method, path, data, headers, raw[:500])
    if answer.status >= 500:
        known = (b"more than one PodDisruptionBudget", b"Too large resource version", b"does not serve")
        assert any(text in raw for text in known), what
    if answer.status == 200 and (not raw or raw.startswith(b'{"type":')):
        assert all(json.loads(line)["type"] for line in raw.splitlines()), what
    elif is_json:
        body = json.loads(raw)
        assert answer.status < 400 or (body["kind"], body["code"]) == ("Status", answer.status), what
    else:
        assert answer.status in (200, 204, 400, 404), what
    return answer.status


def http_path(path: str) -> str:
    return path.replace(" ", "%20")


def check_store(store: Store) -> None:
    """Whatever was asked, what is stored is whole: named, numbered, in its canonical form and in a namespace."""
    uids: set[str] = set()
    for kind in store.kinds.stored.values():
        for stored in store.items(kind.resource):
            obj, meta = stored.object, stored.object["metadata"]
            assert (obj["kind"], obj["apiVersion"]) == (kind.resource.kind, kind.resource.api_version)
            assert meta["uid"] not in uids, "two objects of one identity"
            uids.add(meta["uid"])
            assert meta["resourceVersion"] == str(stored.version)
            assert stored.version <= store.revision
            assert kind.type.read(obj) == obj, "not as it would be read again"
            assert not is_finished(obj), "deleted, held by nobody, and still there"
            entries = meta.get("managedFields") or []
            assert all(e["fieldsType"] == "FieldsV1" and isinstance(e["fieldsV1"], dict) for e in entries)
            if kind.resource.namespaced:
                assert store.find(NAMESPACE, "", meta["namespace"]) is not None
