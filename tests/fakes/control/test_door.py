"""A client's way to the API server: errors, silence and cut watches are this client's alone."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from random import Random

import pytest

from fakes.clock import WallClock
from fakes.control.door import DoorKube, Doors, Errors
from fakes.kube.local import LocalKube
from fakes.kube.store import Store
from fakes.timing import Timing
from harness.kube.port import NODE, ApiError, Gone, Json, TooManyRequests, WatchClosed

pytestmark = pytest.mark.looptime


def node(name: str) -> Json:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}


@pytest.fixture
async def store() -> Store:
    return Store(WallClock(datetime(2026, 1, 1, tzinfo=UTC)), Random(1))


def client(store: Store, doors: Doors, name: str) -> DoorKube:
    return DoorKube(LocalKube(store, name), doors.of(name))


async def test_errors_are_one_clients_alone(store: Store) -> None:
    doors = Doors(1, Timing())
    mine, other = client(store, doors, "karpenter"), client(store, doors, "kube-scheduler")
    doors.of("karpenter").errors = Errors("429", 1.0, 0.0)
    with pytest.raises(TooManyRequests):
        await mine.list(NODE)
    doors.of("karpenter").errors = Errors("500", 1.0, 0.0)
    with pytest.raises(ApiError, match="500"):
        await mine.list(NODE)
    doors.of("karpenter").errors = Errors("timeout", 1.0, 10.0)
    before_s = asyncio.get_running_loop().time()
    with pytest.raises(ConnectionError):
        await mine.list(NODE)
    assert asyncio.get_running_loop().time() - before_s == pytest.approx(10.0)
    assert (await other.list(NODE)).items == ()


async def test_trouble_of_a_process_is_trouble_of_its_parts(store: Store) -> None:
    doors = Doors(1, Timing())
    part = client(store, doors, "kube-controller-manager/hpa")
    doors.of("kube-controller-manager").stop()
    call = asyncio.create_task(part.list(NODE))
    await asyncio.sleep(60)
    assert not call.done()
    doors.of("kube-controller-manager").go_on()
    assert (await call).items == ()


@pytest.mark.parametrize(("gone", "error"), [(False, WatchClosed), (True, Gone)])
async def test_a_watch_that_is_cut_ends_and_loses_nothing(store: Store, gone: bool, error: type[Exception]) -> None:
    doors = Doors(1, Timing())
    kube = client(store, doors, "karpenter")
    seen: list[str] = []

    async def watch(version: str) -> None:
        async for event in kube.watch(NODE, resource_version=version):
            seen.append(event.object["metadata"]["name"])

    begins = (await kube.list(NODE)).resource_version
    watching = asyncio.create_task(watch(begins))
    await kube.create(NODE, node("a"))
    await asyncio.sleep(1)
    doors.of("karpenter").cut_watches(gone=gone)
    with pytest.raises(error):
        await watching
    assert seen == ["a"] and not doors.of("karpenter").watches
    assert doors.watches_begun() == {"karpenter": 1}


async def test_a_watcher_that_is_cancelled_stays_cancelled(store: Store) -> None:
    doors = Doors(1, Timing())
    kube = client(store, doors, "karpenter")

    async def watch() -> None:
        async for _ in kube.watch(NODE, resource_version="1"):
            pass

    watching = asyncio.create_task(watch())
    await asyncio.sleep(1)
    watching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await watching
