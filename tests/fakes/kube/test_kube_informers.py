"""The official client's informer, and its asynchronous watch, kept true by the embedded server."""

from __future__ import annotations

import asyncio
import queue
from typing import TYPE_CHECKING, Any

from kubernetes import client, config, informer
from kubernetes.aio import client as aio_client
from kubernetes.aio import config as aio_config
from kubernetes.aio import watch as aio_watch

from harness.kube import port

if TYPE_CHECKING:
    from conftest import Served

LIMIT_S = 10


def pod(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "x:1"}]}}


async def test_the_informer_follows_what_happens(served: Served) -> None:
    await served.kube.create(port.POD, pod("before"), "default")
    seen: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()
    api: Any = config.new_client_from_config(str(served.kubeconfig))
    core = client.CoreV1Api(api)
    found: Any = informer.SharedInformer(core.list_namespaced_pod, namespace="default", label_selector="app=a")
    for kind in ("ADDED", "MODIFIED", "DELETED"):
        found.add_event_handler(kind, lambda obj, kind=kind: seen.put((kind, obj.metadata.name)))
    found.start()
    try:
        assert await asyncio.to_thread(seen.get, timeout=LIMIT_S) == ("ADDED", "before")
        await served.kube.create(port.POD, pod("after"), "default")
        assert await asyncio.to_thread(seen.get, timeout=LIMIT_S) == ("ADDED", "after")
        await served.kube.patch(port.POD, "after", {"metadata": {"labels": {"more": "1"}}}, "default")
        assert await asyncio.to_thread(seen.get, timeout=LIMIT_S) == ("MODIFIED", "after")
        await served.kube.patch(port.POD, "before", {"metadata": {"labels": {"app": "b"}}}, "default")
        assert await asyncio.to_thread(seen.get, timeout=LIMIT_S) == ("DELETED", "before"), "it left the selection"
        assert [o.metadata.name for o in found.cache.list()] == ["after"]
    finally:
        await asyncio.to_thread(found.stop)
        await asyncio.to_thread(api.close)


async def test_the_asynchronous_client_lists_watches_and_writes(served: Served) -> None:
    api: Any = await aio_config.new_client_from_config(str(served.kubeconfig))
    async with api, asyncio.timeout(LIMIT_S):
        core = aio_client.CoreV1Api(api)
        await core.create_namespaced_pod("default", pod("p"))
        listed = await core.list_namespaced_pod("default")
        assert [p.metadata.name for p in listed.items] == ["p"]
        version = listed.metadata.resource_version
        await core.patch_namespaced_pod("p", "default", [{"op": "add", "path": "/metadata/labels/x", "value": "y"}])
        await core.delete_namespaced_pod("p", "default", grace_period_seconds=0)
        seen = []
        async with aio_watch.Watch() as watch:
            async for event in watch.stream(core.list_namespaced_pod, "default", resource_version=version):
                seen.append(event["type"])
                if event["type"] == "DELETED":
                    break
    assert seen == ["MODIFIED", "MODIFIED", "DELETED"]
