"""The HTTP server as a client meets it on the wire."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from aiohttp import web

from fakes.kube import Store, make_app
from harness.kube import port
from harness.kube.port import Json

if TYPE_CHECKING:
    from conftest import Served

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
POD: Json = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x:1"}]}}
TABLE = (
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
)


@pytest.fixture
async def http(served: Served) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(served.url, timeout=aiohttp.ClientTimeout(total=10)) as session:
        yield session


async def fetch(http: aiohttp.ClientSession, method: str, path: str, **how: Any) -> tuple[int, Json]:
    async with http.request(method, path, **how) as answer:
        return answer.status, json.loads(await answer.read())


async def lines(answer: aiohttp.ClientResponse, count: int) -> list[Json]:
    return [json.loads(await answer.content.readline()) for _ in range(count)]


def shown(events: list[Json]) -> list[tuple[str, str]]:
    return [(e["type"], e["object"]["metadata"].get("name", "")) for e in events]


async def make(served: Served, *names: str) -> None:
    for name in names:
        await served.kube.create(port.CONFIG_MAP, {"metadata": {"name": name}}, "default")


async def test_version_and_health(http: aiohttp.ClientSession) -> None:
    for path in ("/version", "/version/", "/version?timeout=5s"):
        status, body = await fetch(http, "GET", path)
        assert (status, body["gitVersion"][:4], body["minor"]) == (200, "v1.3", "37")
    for path in ("/healthz", "/livez", "/readyz"):
        async with http.get(path) as answer:
            assert (answer.status, await answer.text()) == (200, "ok")


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("application/json", "APIGroupList"),
        ("application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json", "APIGroupList"),
        (
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
            "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json",
            "v2",
        ),
    ],
)
async def test_discovery_is_negotiated(http: aiohttp.ClientSession, accept: str, kind: str) -> None:
    async with http.get("/apis", headers={"Accept": accept}) as answer:
        body = json.loads(await answer.read())
        content_type = answer.headers["Content-Type"]
    if kind == "APIGroupList":
        assert {g["name"] for g in body["groups"]} >= {"apps", "policy", "karpenter.sh", "scheduling.k8s.io"}
        return
    assert content_type == f"application/json;g=apidiscovery.k8s.io;v={kind};as=APIGroupDiscoveryList"
    assert body["apiVersion"] == f"apidiscovery.k8s.io/{kind}"
    apps = next(item for item in body["items"] if item["metadata"]["name"] == "apps")
    deployments = next(r for r in apps["versions"][0]["resources"] if r["resource"] == "deployments")
    assert [s["subresource"] for s in deployments["subresources"]] == ["status", "scale"]


async def test_plain_discovery_names_the_eviction_subresource(http: aiohttp.ClientSession) -> None:
    _, body = await fetch(http, "GET", "/api/v1")
    eviction = next(r for r in body["resources"] if r["name"] == "pods/eviction")
    assert (eviction["group"], eviction["version"], eviction["kind"]) == ("policy", "v1", "Eviction")


@pytest.mark.parametrize(
    ("method", "path", "status", "reason"),
    [
        ("GET", "/api/v1/namespaces/default/pods/none", 404, "NotFound"),
        ("GET", "/api/v1/unicorns", 404, "NotFound"),
        ("POST", "/api/v1/pods", 405, "MethodNotAllowed"),
        ("POST", "/api/v1/namespaces/default/pods/p", 405, "MethodNotAllowed"),
        ("GET", "/api/v1/namespaces/default/pods/p/log", 404, "NotFound"),
        ("POST", "/api/v1/namespaces/default/pods/p/exec", 501, "NotImplemented"),
        ("GET", "/api/v1/pods?limit=many", 400, "BadRequest"),
        ("GET", "/api/v1/pods?labelSelector=a%20b%20c", 400, "BadRequest"),
        ("GET", "/api/v1/pods?resourceVersion=99999", 504, "Timeout"),
        ("GET", "/api/v1/pods?continue=junk", 400, "BadRequest"),
        ("GET", "/openapi/v2", 404, "NotFound"),
    ],
)
async def test_every_error_is_a_status(
    http: aiohttp.ClientSession, method: str, path: str, status: int, reason: str
) -> None:
    got, body = await fetch(http, method, path)
    assert (got, body["kind"], body["status"], body["reason"], body["code"]) == (
        status,
        "Status",
        "Failure",
        reason,
        status,
    )
    assert body["message"]


@pytest.mark.parametrize("body", ["{", "[1]", '"text"', "NaN", '{"a":' * 500 + "1" + "}" * 500])
async def test_bodies_that_are_no_object(http: aiohttp.ClientSession, body: str) -> None:
    headers = {"Content-Type": "application/json"}
    got, answer = await fetch(http, "POST", CONFIG_MAPS, data=body, headers=headers)
    assert (got, answer["reason"]) == (400, "BadRequest")


async def test_unknown_patch_types_and_dry_run_values(http: aiohttp.ClientSession, served: Served) -> None:
    await make(served, "a")
    got, body = await fetch(http, "PATCH", f"{CONFIG_MAPS}/a", data="{}", headers={"Content-Type": "application/xml"})
    assert (got, body["reason"]) == (415, "UnsupportedMediaType")
    got, body = await fetch(http, "POST", f"{CONFIG_MAPS}?dryRun=Some", json={"metadata": {"name": "b"}})
    assert (got, body["reason"]) == (422, "Invalid")
    got, body = await fetch(http, "POST", f"{CONFIG_MAPS}?dryRun=All", json={"metadata": {"name": "b"}})
    assert got == 201
    got, body = await fetch(http, "GET", f"{CONFIG_MAPS}/b")
    assert got == 404


async def test_the_manager_is_the_user_agent(http: aiohttp.ClientSession) -> None:
    headers = {"User-Agent": "kubectl/v1.32 (linux)"}
    _, made = await fetch(
        http, "POST", CONFIG_MAPS, json={"metadata": {"name": "a"}, "data": {"k": "v"}}, headers=headers
    )
    assert made["metadata"]["managedFields"][0]["manager"] == "kubectl"


async def test_pages_are_one_snapshot(http: aiohttp.ClientSession, served: Served) -> None:
    await make(served, *(f"c{i}" for i in range(5)))
    _, page = await fetch(http, "GET", f"{CONFIG_MAPS}?limit=2")
    version, names = page["metadata"]["resourceVersion"], [i["metadata"]["name"] for i in page["items"]]
    assert page["metadata"]["remainingItemCount"] == 4
    await served.kube.delete(port.CONFIG_MAP, "c4", "default")
    await make(served, "c9")
    while token := page["metadata"].get("continue"):
        last = token
        _, page = await fetch(http, "GET", CONFIG_MAPS, params={"limit": "2", "continue": token})
        assert page["metadata"]["resourceVersion"] == version
        names += [i["metadata"]["name"] for i in page["items"]]
    assert names == [*(f"c{i}" for i in range(5)), "kube-root-ca.crt"]
    status, _ = await fetch(http, "GET", CONFIG_MAPS, params={"continue": last})
    assert status == 200, "the last page may be read again"
    for _ in range(100):
        await fetch(http, "GET", f"{CONFIG_MAPS}?limit=1")
    status, body = await fetch(http, "GET", CONFIG_MAPS, params={"continue": last})
    assert (status, body["reason"]) == (410, "Expired")


async def test_a_watch_without_a_version_tells_the_present_first(http: aiohttp.ClientSession, served: Served) -> None:
    await make(served, "a", "b")
    async with http.get(f"{CONFIG_MAPS}?watch=true&timeoutSeconds=5") as answer:
        assert shown(await lines(answer, 3)) == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "kube-root-ca.crt")]
        await served.kube.delete(port.CONFIG_MAP, "a", "default")
        assert shown(await lines(answer, 1)) == [("DELETED", "a")]


async def test_a_watch_ends_at_its_timeout(http: aiohttp.ClientSession, served: Served) -> None:
    since = served.store.revision
    async with http.get(f"{CONFIG_MAPS}?watch=1&timeoutSeconds=1&resourceVersion={since}") as answer:
        assert await answer.read() == b""


async def test_bookmarks_carry_the_stores_version(http: aiohttp.ClientSession, served: Served) -> None:
    since = served.store.revision
    await served.kube.create(port.SERVICE_ACCOUNT, {"metadata": {"name": "other"}}, "default")
    query = f"watch=true&resourceVersion={since}&allowWatchBookmarks=true&timeoutSeconds=5"
    async with http.get(f"{CONFIG_MAPS}?{query}") as answer:
        (event,) = await lines(answer, 1)
    assert event["type"] == "BOOKMARK"
    assert event["object"]["metadata"]["resourceVersion"] == str(served.store.revision)
    assert event["object"]["kind"] == "ConfigMap"


async def test_watch_list(http: aiohttp.ClientSession, served: Served) -> None:
    await make(served, "a")
    query = (
        "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=5"
    )
    async with http.get(f"{CONFIG_MAPS}?{query}") as answer:
        added, _, end = await lines(answer, 3)
    assert added["type"] == "ADDED"
    assert end["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    status, body = await fetch(http, "GET", f"{CONFIG_MAPS}?watch=true&sendInitialEvents=true")
    assert (status, body["reason"]) == (422, "Invalid")


async def test_a_watch_beyond_the_window_gets_an_error_event(http: aiohttp.ClientSession, served: Served) -> None:
    since = served.store.revision
    await make(served, *(f"c{i}" for i in range(450)))
    async with http.get(f"{CONFIG_MAPS}?watch=true&resourceVersion={since}") as answer:
        assert answer.status == 200
        (event,) = await lines(answer, 1)
        assert await answer.content.read() == b""
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")


async def test_watches_select_by_field(http: aiohttp.ClientSession, served: Served) -> None:
    await served.kube.create(port.POD, POD, "default")
    query = "watch=true&fieldSelector=spec.nodeName%3Dn1&timeoutSeconds=5"
    async with http.get(f"/api/v1/pods?{query}") as answer:
        await served.kube.bind("p", "default", "n1")
        assert shown(await lines(answer, 1)) == [("ADDED", "p")]


async def test_a_slow_watcher_holds_up_nobody_and_is_told(served: Served) -> None:
    host, port_number = served.url.removeprefix("http://").split(":")
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.connect((host, int(port_number)))
    since = served.store.revision
    sock.sendall(f"GET {CONFIG_MAPS}?watch=true&resourceVersion={since} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    big = "x" * 100_000
    for i in range(500):
        # A writer that never waits for the reader: the window (200) passes by what the sockets can hold.
        await served.kube.create(port.CONFIG_MAP, {"metadata": {"name": f"c{i}"}, "data": {"k": big}}, "default")
    sock.setblocking(False)
    loop, seen = asyncio.get_running_loop(), b""
    async with asyncio.timeout(20):
        while b'"reason":"Expired"' not in seen:
            received = await loop.sock_recv(sock, 1 << 20)
            assert received, f"the stream ended without an ERROR event: {seen!r}"
            seen = seen[-400:] + received
    assert b'"type":"ERROR"' in seen
    sock.close()


async def test_watches_end_cleanly_when_the_server_stops(served: Served) -> None:
    async with aiohttp.ClientSession(served.url) as session:
        answer = await session.get(f"{CONFIG_MAPS}?watch=true&resourceVersion={served.store.revision}")
        async with asyncio.timeout(5):
            cleaning = asyncio.create_task(served.runner.cleanup())
            assert await answer.read() == b"", "the stream ends, it is not torn"
            await cleaning


async def test_tables(http: aiohttp.ClientSession, served: Served) -> None:
    await served.kube.create(port.POD, POD, "default")
    _, body = await fetch(http, "GET", "/api/v1/namespaces/default/pods", headers={"Accept": TABLE})
    assert (body["kind"], body["rows"][0]["object"]["kind"]) == ("Table", "PartialObjectMetadata")
    columns = [c["name"] for c in body["columnDefinitions"] if c["priority"] == 0]
    assert columns == ["Name", "Ready", "Status", "Restarts", "Age"]
    assert body["rows"][0]["cells"][:4] == ["p", "0/1", "Pending", "0"]
    _, one = await fetch(
        http, "GET", "/api/v1/namespaces/default/pods/p?includeObject=Object", headers={"Accept": TABLE}
    )
    assert one["rows"][0]["object"]["kind"] == "Pod"
    query = "watch=true&timeoutSeconds=5"
    async with http.get(f"/api/v1/pods?{query}", headers={"Accept": TABLE}) as answer:
        (event,) = await lines(answer, 1)
    assert (event["type"], event["object"]["kind"], len(event["object"]["rows"])) == ("ADDED", "Table", 1)


async def test_eviction_and_binding_answers(http: aiohttp.ClientSession, served: Served) -> None:
    await served.kube.create(port.POD, POD, "default")
    target = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}
    path = "/api/v1/namespaces/default/pods/p"
    success = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    assert await fetch(http, "POST", f"{path}/binding", json=target) == (201, success)
    status, body = await fetch(http, "POST", f"{path}/eviction", json={"metadata": {"name": "other"}})
    assert (status, body["message"]) == (400, "name in URL does not match name in Eviction object")
    assert await fetch(http, "POST", f"{path}/eviction", json={"metadata": {"name": "p"}}) == (201, success)
    status, deleted = await fetch(http, "DELETE", f"{path}?gracePeriodSeconds=0")
    assert (status, deleted["kind"], deleted["metadata"]["deletionGracePeriodSeconds"]) == (200, "Pod", 0)
    await make(served, "a")
    status, gone = await fetch(http, "DELETE", f"{CONFIG_MAPS}/a")
    assert (gone["status"], gone["details"]["name"], gone["details"]["kind"]) == ("Success", "a", "configmaps")


async def test_delete_collection(http: aiohttp.ClientSession, served: Served) -> None:
    for name, app in (("a", "x"), ("b", "y")):
        await served.kube.create(port.CONFIG_MAP, {"metadata": {"name": name, "labels": {"app": app}}}, "default")
    await fetch(http, "DELETE", f"{CONFIG_MAPS}?labelSelector=app=x")
    left = (await served.kube.list(port.CONFIG_MAP, "default")).items
    assert [o["metadata"]["name"] for o in left] == ["b", "kube-root-ca.crt"]


async def test_server_side_apply_creates_then_takes_back_what_is_left_out(http: aiohttp.ClientSession) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "1"}}
    how: Json = {"headers": {"Content-Type": "application/apply-patch+yaml"}, "params": {"fieldManager": "me"}}
    status, _ = await fetch(http, "PATCH", f"{CONFIG_MAPS}/a", data=json.dumps(body), **how)
    assert status == 201
    status, got = await fetch(http, "PATCH", f"{CONFIG_MAPS}/a", data=json.dumps(body | {"data": {"l": "2"}}), **how)
    assert (status, got["data"]) == (200, {"l": "2"})
    assert [(e["manager"], e["operation"]) for e in got["metadata"]["managedFields"]] == [("me", "Apply")]
    status, _ = await fetch(http, "PATCH", f"{CONFIG_MAPS}/a", data=json.dumps(body), headers=how["headers"])
    assert status == 422


async def test_access_reviews(http: aiohttp.ClientSession) -> None:
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    status, body = await fetch(http, "POST", path, json={"spec": {"resourceAttributes": {"verb": "get"}}})
    assert (status, body["status"]["allowed"]) == (201, True)


class Metrics:
    """An aggregated API as the world hands it in."""

    group, version = "custom.metrics.k8s.io", "v1beta1"
    resources: list[Json] = [  # noqa: RUF012 - the protocol asks for a list
        {"name": "pods/q", "singularName": "", "namespaced": True, "kind": "MetricValueList", "verbs": ["get"]}
    ]

    async def handle(self, path: str, query: Mapping[str, str]) -> tuple[int, Json]:
        return 200, {"kind": "MetricValueList", "path": path, "selector": query.get("labelSelector", "")}


async def test_aggregated_apis(store: Store) -> None:
    runner = web.AppRunner(make_app(store, [Metrics()]), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, number = runner.addresses[0][:2]
    async with aiohttp.ClientSession(f"http://{host}:{number}") as http:
        base = "/apis/custom.metrics.k8s.io/v1beta1"
        _, listed = await fetch(http, "GET", base)
        assert [r["name"] for r in listed["resources"]] == ["pods/q"]
        _, body = await fetch(http, "GET", f"{base}/namespaces/default/pods/*/q?labelSelector=app%3Dllm")
        assert (body["path"], body["selector"]) == ("namespaces/default/pods/*/q", "app=llm")
        _, groups = await fetch(http, "GET", "/apis")
        assert "custom.metrics.k8s.io" in {g["name"] for g in groups["groups"]}
        status, _ = await fetch(http, "DELETE", f"{base}/namespaces/default/pods/p/q")
        assert status == 405
    await runner.cleanup()
