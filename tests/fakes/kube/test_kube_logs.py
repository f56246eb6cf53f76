"""GET pods/log: what the nodes' side kept, asked for in the ways of kubectl."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from random import Random
from types import FrameType
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from fakes.clock import WallClock
from fakes.kube import LocalKube, Store, make_app
from fakes.kube.podlogs import NoLogs
from fakes.nodes.logs import PodLogs
from harness.kube import port
from harness.kube.port import Json

LOG = "/api/v1/namespaces/default/pods/p/log"
POD: Json = {"metadata": {"name": "p"}, "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "x:1"}]}}


@pytest.fixture
async def logs() -> PodLogs:
    return PodLogs(WallClock(datetime(2026, 1, 1, tzinfo=UTC)))


@pytest.fixture
async def http(logs: PodLogs) -> AsyncIterator[aiohttp.ClientSession]:
    store = Store(WallClock(datetime(2026, 1, 1, tzinfo=UTC)), Random(1))
    runner = web.AppRunner(make_app(store, logs=logs), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made = await LocalKube(store, "test").create(port.POD, POD, "default")
    say = logs.begin(made, "c")
    for line in ("one", "two", "three"):
        say(line)
    host, number = runner.addresses[0][:2]
    async with aiohttp.ClientSession(f"http://{host}:{number}") as session:
        session.headers["x-uid"] = made["metadata"]["uid"]
        yield session
    await runner.cleanup()


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("", "one\ntwo\nthree\n"),
        ("?container=c&tailLines=1", "three\n"),
        ("?tailLines=0", ""),
        ("?limitBytes=5", "one\nt"),
    ],
)
async def test_what_was_said(http: aiohttp.ClientSession, query: str, text: str) -> None:
    async with http.get(LOG + query) as answer:
        assert (answer.status, answer.content_type, await answer.text()) == (200, "text/plain", text)


@pytest.mark.parametrize(
    ("query", "status", "message"),
    [
        ("?container=none", 400, "container none is not valid for pod p"),
        ("?previous=true", 400, 'previous terminated container "c" in pod "p" not found'),
        ("?tailLines=few", 400, 'strconv.ParseInt: parsing "few": invalid syntax'),
        ("?limitBytes=0", 422, 'PodLogOptions "p" is invalid: limitBytes: Invalid value: 0: must be greater than 0'),
    ],
)
async def test_what_cannot_be_read(http: aiohttp.ClientSession, query: str, status: int, message: str) -> None:
    async with http.get(LOG + query) as answer:
        body = await answer.json()
    assert (answer.status, body["kind"], body["message"]) == (status, "Status", message)


async def test_following_ends_with_the_process(http: aiohttp.ClientSession, logs: PodLogs) -> None:
    uid = http.headers["x-uid"]
    pod: Json = {"metadata": {"name": "p", "namespace": "default", "uid": uid}}
    async with http.get(f"{LOG}?follow=true&tailLines=1") as answer, asyncio.timeout(10):
        assert await answer.content.readline() == b"three\n"
        logs.end(pod, "c")
        assert await answer.content.read() == b""


def steps_of(call: Callable[[], None]) -> int:
    """Instructions of Python that it takes, loops within comprehensions included."""
    count = 0

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.looptime
async def test_forgetting_a_pod_costs_the_same_among_many() -> None:
    found = {}
    for pods in (10, 500):
        logs = PodLogs(WallClock(datetime(2026, 1, 1, tzinfo=UTC)))
        made: list[Json] = [{"metadata": {"namespace": "n", "name": f"p{i}", "uid": f"u{i}"}} for i in range(pods)]
        for pod in made:
            logs.begin(pod, "c")
        found[pods] = steps_of(lambda logs=logs, pod=made[pods // 2]: logs.forget(pod))  # type: ignore[misc]
        with pytest.raises(NoLogs):
            logs.read("n", f"p{pods // 2}", "c")
    assert found[500] == found[10] > 0, found
