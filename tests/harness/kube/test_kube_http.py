"""The port over HTTP behaves as the port in process, and its connection's failures have names."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest
import yaml
from aiohttp import web

from fakes.clock import WallClock
from fakes.kube import Store, make_app
from harness.errors import BadInput
from harness.kube import port
from harness.kube.http import HttpKube, current_context
from harness.kube.port import EventType, Json, Kube, PatchType

POD: Json = {
    "metadata": {"name": "p", "labels": {"app": "llm"}},
    "spec": {"containers": [{"name": "c", "image": "x:1"}]},
}


async def serve(app: web.Application) -> tuple[web.AppRunner, str]:
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, number = runner.addresses[0][:2]
    return runner, f"http://{host}:{number}"


def write_kubeconfig(folder: Path, url: str) -> Path:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "a",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"token": "secret"}}],
        "contexts": [{"name": "a", "context": {"cluster": "c", "user": "u"}}],
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


@pytest.fixture
async def store() -> Store:
    return Store(WallClock(datetime.now(UTC)), Random(1), window=50)


@pytest.fixture
async def runner(store: Store, tmp_path: Path) -> AsyncIterator[web.AppRunner]:
    runner, url = await serve(make_app(store, bookmark_s=0.05))
    write_kubeconfig(tmp_path, url)
    yield runner
    await runner.cleanup()


@pytest.fixture
async def kube(runner: web.AppRunner, tmp_path: Path) -> AsyncIterator[HttpKube]:
    async with HttpKube(tmp_path / "kubeconfig") as kube:
        yield kube


def test_it_is_the_port() -> None:
    as_port: Callable[[Path], Kube] = HttpKube
    assert as_port is HttpKube


async def test_a_pod_from_creation_to_its_end(kube: HttpKube) -> None:
    made = await kube.create(port.POD, POD, "default")
    assert made["metadata"]["managedFields"][0]["manager"] == "gpu-harness"
    await kube.bind("p", "default", "n1")
    with pytest.raises(port.Conflict):
        await kube.bind("p", "default", "n2")
    await kube.patch(port.POD, "p", {"status": {"phase": "Running"}}, "default", subresource="status")
    image = [{"op": "replace", "path": "/spec/containers/0/image", "value": "x:2"}]
    await kube.patch(port.POD, "p", image, "default", type=PatchType.JSON)
    found = await kube.patch(
        port.POD, "p", {"spec": {"containers": [{"name": "c", "image": "x:3"}]}}, "default", type=PatchType.STRATEGIC
    )
    assert found["spec"]["containers"][0]["image"] == "x:3"
    with pytest.raises(port.Conflict):
        await kube.update(port.POD, made)
    listed = await kube.list(port.POD, label_selector="app=llm", field_selector="spec.nodeName=n1")
    assert [(p["kind"], p["metadata"]["name"]) for p in listed.items] == [("Pod", "p")]
    with pytest.raises(port.Conflict):
        await kube.delete(port.POD, "p", "default", uid="another")
    await kube.evict("p", "default", grace_s=7)
    assert (await kube.get(port.POD, "p", "default"))["metadata"]["deletionGracePeriodSeconds"] == 7
    await kube.delete(port.POD, "p", "default", grace_s=0)
    with pytest.raises(port.NotFound) as missing:
        await kube.get(port.POD, "p", "default")
    assert missing.value.body["details"]["name"] == "p"


async def test_a_refused_eviction(kube: HttpKube) -> None:
    await kube.create(port.POD, POD | {"spec": POD["spec"] | {"nodeName": "n1"}}, "default")
    await kube.patch(port.POD, "p", {"status": {"phase": "Running"}}, "default", subresource="status")
    budget: Json = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "llm"}}}}
    made = await kube.create(port.PDB, budget, "default")
    made["status"] = {"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 2}
    await kube.update(port.PDB, made, subresource="status")
    with pytest.raises(port.TooManyRequests) as refused:
        await kube.evict("p", "default")
    assert refused.value.body["details"]["causes"][0]["reason"] == "DisruptionBudget"


async def test_scale_and_fingerprint(kube: HttpKube, store: Store) -> None:
    labels = {"app": "llm"}
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": POD["spec"]}}
    await kube.create(port.DEPLOYMENT, {"metadata": {"name": "llm", "namespace": "default"}, "spec": spec})
    got = await kube.patch(port.DEPLOYMENT, "llm", {"spec": {"replicas": 4}}, "default", subresource="scale")
    got["spec"]["replicas"] = 5
    await kube.update(port.DEPLOYMENT, got, subresource="scale")
    assert (await kube.get(port.DEPLOYMENT, "llm", "default"))["spec"]["replicas"] == 5
    system = store.find(port.NAMESPACE, "", "kube-system")
    assert system is not None
    assert await kube.fingerprint() == system.object["metadata"]["uid"]
    assert (await kube.raw("/version"))["major"] == "1"


async def test_the_servers_time_of_day(kube: HttpKube) -> None:
    first, second = await kube.time_of_day(), await kube.time_of_day()
    assert first is not None and second is not None
    assert first.utcoffset() is not None and first <= second


async def test_lists_follow_their_pages(kube: HttpKube, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.kube.http._PAGE", 2)
    for i in range(5):
        await kube.create(port.CONFIG_MAP, {"metadata": {"name": f"c{i}"}}, "default")
    listed = await kube.list(port.CONFIG_MAP, "default")
    assert [o["metadata"]["name"] for o in listed.items] == [*(f"c{i}" for i in range(5)), "kube-root-ca.crt"]


async def test_a_watch(kube: HttpKube) -> None:
    listed = await kube.list(port.POD, "default")
    seen = []
    events = kube.watch(port.POD, "default", resource_version=listed.resource_version, label_selector="app=llm")
    async with asyncio.timeout(10):
        async for event in events:
            seen.append(event.type)
            if seen == [EventType.BOOKMARK]:
                assert int(event.object["metadata"]["resourceVersion"]) >= int(listed.resource_version)
                await kube.create(port.POD, POD, "default")
            elif event.type is EventType.ADDED:
                await kube.delete(port.POD, "p", "default")
            elif event.type is EventType.DELETED:
                break
    assert [t for t in seen if t is not EventType.BOOKMARK] == [EventType.ADDED, EventType.MODIFIED, EventType.DELETED]


async def test_a_watch_that_is_too_old_is_gone(kube: HttpKube) -> None:
    since = (await kube.list(port.CONFIG_MAP)).resource_version
    for i in range(110):
        await kube.create(port.CONFIG_MAP, {"metadata": {"name": f"c{i}"}}, "default")
    with pytest.raises(port.Gone):
        await anext(kube.watch(port.CONFIG_MAP, resource_version=since))


async def test_a_watch_says_when_the_server_ends_it(kube: HttpKube, runner: web.AppRunner) -> None:
    since = (await kube.list(port.POD)).resource_version
    events = kube.watch(port.POD, resource_version=since)
    async with asyncio.timeout(10):
        assert (await anext(events)).type is EventType.BOOKMARK
        stopping = asyncio.create_task(runner.cleanup())
        with pytest.raises(port.WatchClosed):
            while True:
                await anext(events)
        await stopping
    with pytest.raises(ConnectionError):
        await kube.get(port.POD, "p", "default")


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@pytest.fixture
async def odd_server(tmp_path: Path) -> AsyncIterator[Callable[[Handler], Awaitable[HttpKube]]]:
    """A server of the test's own, for answers that the embedded one never gives."""
    opened: list[tuple[web.AppRunner, HttpKube]] = []

    async def start(handler: Handler) -> HttpKube:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", handler)
        runner, url = await serve(app)
        kube = HttpKube(write_kubeconfig(tmp_path, url))
        opened.append((runner, kube))
        return kube

    yield start
    for runner, kube in opened:
        await kube.close()
        await runner.cleanup()


async def test_a_torn_watch_is_closed_and_half_a_line_is_no_event(
    odd_server: Callable[[Handler], Awaitable[HttpKube]],
) -> None:
    async def torn(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        line = json.dumps({"type": "ADDED", "object": {"metadata": {"name": "a", "resourceVersion": "1"}}})
        await response.write(f'{line}\n{{"type":"ADDED","obj'.encode())
        assert request.transport is not None
        request.transport.abort()
        return response

    events = (await odd_server(torn)).watch(port.POD, resource_version="1")
    assert (await anext(events)).object["metadata"]["name"] == "a"
    with pytest.raises(port.WatchClosed):
        await anext(events)


async def test_the_token_is_sent_and_an_answer_of_no_api_server_is_an_error(
    odd_server: Callable[[Handler], Awaitable[HttpKube]],
) -> None:
    seen: list[str | None] = []

    async def proxy(request: web.Request) -> web.StreamResponse:
        seen.append(request.headers.get("Authorization"))
        return web.Response(status=502, text="<html>bad gateway</html>")

    kube = await odd_server(proxy)
    with pytest.raises(port.ApiError) as refused:
        await kube.get(port.NODE, "n")
    assert (refused.value.status, refused.value.message) == (502, "<html>bad gateway</html>")
    assert seen == ["Bearer secret"]


async def test_an_expired_page_is_read_again_whole(odd_server: Callable[[Handler], Awaitable[HttpKube]]) -> None:
    async def pages(request: web.Request) -> web.StreamResponse:
        if "continue" in request.query:
            return web.json_response({"kind": "Status", "reason": "Expired", "code": 410, "message": "old"}, status=410)
        more = {"continue": "t"} if "limit" in request.query else {}
        items = [{"metadata": {"name": "a"}}] + ([] if more else [{"metadata": {"name": "b"}}])
        return web.json_response({"metadata": {"resourceVersion": "7", **more}, "items": items})

    listed = await (await odd_server(pages)).list(port.NODE)
    assert [o["metadata"]["name"] for o in listed.items] == ["a", "b"]


async def test_a_kubeconfig_that_cannot_be_used(tmp_path: Path, runner: web.AppRunner) -> None:
    with pytest.raises(BadInput, match="no kubeconfig"):
        await HttpKube(tmp_path / "none").get(port.NODE, "n")
    with pytest.raises(BadInput, match="cannot be used"):
        await HttpKube(tmp_path / "kubeconfig", context="missing").get(port.NODE, "n")


@pytest.mark.parametrize(
    "text",
    [
        "", "x", "[]", "\0", "clusters: 5", "a: !!python/object:os.system x", "current-context: a\n: :", "contexts: {}",
        "a: &a [*a]", b"\xff\xfe", "clusters: [{name: a, cluster: {server: 'http://127.0.0.1:99999999'}}]",
        "clusters: [{name: a, cluster: {server: 'http://['}}]",
    ],
)  # fmt: skip
async def test_whatever_stands_in_a_kubeconfig_it_is_one_clear_error(tmp_path: Path, text: str | bytes) -> None:
    path = tmp_path / "kubeconfig"
    head = b"current-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\nusers: [{name: a, user: {}}]\n"
    data = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(head + data if data.startswith(b"clusters: [") else data)
    with pytest.raises(BadInput, match="kubeconfig"):
        async with HttpKube(path):
            pass
    if b"current-context" not in path.read_bytes():
        with pytest.raises(BadInput, match="no current context to read"):
            current_context(path)


def test_a_pipe_is_no_kubeconfig_and_nobody_waits_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "kubeconfig")
    with pytest.raises(BadInput, match="is no file"):
        current_context(tmp_path / "kubeconfig")


async def test_a_token_that_is_over_is_read_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    valid, asked = ["Bearer first"], []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.headers.get("Authorization"))
        if asked[-1] != valid[0]:
            return web.json_response({"kind": "Status", "message": "Unauthorized"}, status=401)
        return web.json_response({"gitVersion": "v1.37.2"})

    app = web.Application()
    app.router.add_get("/version", answer)
    runner, url = await serve(app)
    config = yaml.safe_load(write_kubeconfig(tmp_path, url).read_text())
    config["users"] = [{"name": "u", "user": {"tokenFile": "token"}}]  # beside the kubeconfig, wherever we are
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config))
    (tmp_path / "token").write_text("first")
    try:
        async with HttpKube(tmp_path / "kubeconfig") as kube:
            await kube.raw("/version")
            valid[0] = "Bearer second"
            (tmp_path / "token").write_text("second")
            with pytest.raises(port.ApiError, match="401"):
                await kube.raw("/version")  # just read: it would be the same
            monkeypatch.setattr("harness.kube.http._RENEW_EACH_S", 0.0)
            await kube.raw("/version")
            (tmp_path / "token").unlink()
            valid[0] = "Bearer third"
            with pytest.raises(port.ApiError, match="401"):
                await kube.raw("/version")
    finally:
        await runner.cleanup()
    assert asked == ["Bearer first", "Bearer first", "Bearer first", "Bearer second", "Bearer second"]


def test_a_program_for_credentials_that_never_answers_is_told(tmp_path: Path) -> None:
    config = yaml.safe_load(write_kubeconfig(tmp_path, "http://127.0.0.1:9").read_text())
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "sleep", "args": ["60"]}
    config["users"] = [{"name": "u", "user": {"exec": plugin}}]
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config))
    impatient = "import harness.kube.http as h; h._LOGIN_S = 0.2; from harness.cli import main; main()"
    args = ["inspect", "--kubeconfig", str(tmp_path / "kubeconfig")]
    done = subprocess.run(
        [sys.executable, "-c", impatient, *args], capture_output=True, text=True, check=False, timeout=50
    )
    assert done.returncode == 64
    assert "its program for credentials said nothing within 0.2 s" in done.stderr
    assert "Traceback" not in done.stderr
