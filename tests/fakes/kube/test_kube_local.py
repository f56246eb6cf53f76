"""The port in process: what a controller relies on."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from random import Random

import pytest

from fakes.clock import WallClock
from fakes.kube import LocalKube, Store
from harness.kube import port
from harness.kube.port import EventType, Json, PatchType

pytestmark = pytest.mark.looptime


def make_kube(window: int = 4096) -> LocalKube:
    store = Store(WallClock(datetime(2026, 11, 29, 12, tzinfo=UTC)), Random(1), window=window)
    return LocalKube(store, "test")


def pod(name: str = "p", **spec: object) -> Json:
    return {
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "llm"}},
        "spec": {"containers": [{"name": "c", "image": "busybox:1"}], **spec},
    }


async def test_a_pod_from_creation_to_its_end() -> None:
    kube = make_kube()
    made = await kube.create(port.POD, pod())
    assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert made["metadata"]["generation"] == 1
    await kube.bind("p", "default", "n1")
    with pytest.raises(port.Conflict):
        await kube.bind("p", "default", "n2")
    await kube.patch(port.POD, "p", {"status": {"phase": "Running"}}, "default", subresource="status")
    await kube.delete(port.POD, "p", "default")
    marked = await kube.get(port.POD, "p", "default")
    assert marked["metadata"]["deletionTimestamp"] == "2026-11-29T12:00:30Z"
    assert (marked["metadata"]["deletionGracePeriodSeconds"], marked["metadata"]["generation"]) == (30, 2)
    await kube.delete(port.POD, "p", "default", grace_s=0)
    with pytest.raises(port.NotFound):
        await kube.get(port.POD, "p", "default")


async def test_a_watch_resumes_and_follows_a_selector() -> None:
    kube = make_kube()
    listed = await kube.list(port.POD, "default", label_selector="app=llm")
    events = kube.watch(port.POD, "default", resource_version=listed.resource_version, label_selector="app=llm")
    first = asyncio.create_task(anext(events))
    await kube.create(port.POD, pod())
    assert (await first).type is EventType.ADDED
    await kube.patch(port.POD, "p", {"metadata": {"labels": {"app": "other"}}}, "default")
    assert (await anext(events)).type is EventType.DELETED
    await kube.patch(port.POD, "p", {"metadata": {"labels": {"app": "llm"}}}, "default", type=PatchType.STRATEGIC)
    assert (await anext(events)).type is EventType.ADDED


async def test_a_watch_beyond_the_window_is_gone() -> None:
    kube = make_kube(window=4)
    for i in range(20):
        await kube.create(port.CONFIG_MAP, {"metadata": {"name": f"c{i}", "namespace": "default"}})
    with pytest.raises(port.Gone):
        await anext(kube.watch(port.CONFIG_MAP, resource_version="1"))
