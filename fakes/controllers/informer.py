"""A local copy of one resource, kept by list and watch, with callbacks on every change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from harness.kube.port import ApiError, EventType, Gone, Json, Kube, Resource, WatchClosed

Change = Callable[[EventType, Json, Json | None], None]
Key = tuple[str, str]

REFUSED_RETRY_S = 0.5


def key_of(obj: Json) -> Key:
    """(namespace, name); the namespace of a cluster-scoped object is empty."""
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


class Informer:
    """``objects`` may lag the server by the events still on their way; writers rely on resourceVersion conflicts."""

    def __init__(self, kube: Kube, resource: Resource, namespace: str | None = None, label_selector: str = "") -> None:
        self._kube = kube
        self._resource = resource
        self._namespace = namespace
        self._label_selector = label_selector
        self._callbacks: list[Change] = []
        self._synced = asyncio.Event()
        self.objects: dict[Key, Json] = {}

    def on_change(self, callback: Change) -> None:
        """``callback(type, new, old)`` runs synchronously in order; for DELETED ``new`` is the last state."""
        self._callbacks.append(callback)

    async def synced(self) -> None:
        await self._synced.wait()

    def values(self) -> Iterator[Json]:
        return iter(list(self.objects.values()))

    async def run(self) -> None:
        version: str | None = None
        while True:
            try:
                if version is None:
                    version = await self._list()
                version = await self._watch(version)
            except Gone:
                version = None
            except ConnectionError:
                await asyncio.sleep(0.05)
            except ApiError:
                await asyncio.sleep(REFUSED_RETRY_S)  # a server in trouble, or a resource that is not served yet

    async def _list(self) -> str:
        listed = await self._kube.list(self._resource, self._namespace, label_selector=self._label_selector)
        present = {key_of(o): o for o in listed.items}
        for key in [k for k in self.objects if k not in present]:
            self._apply(EventType.DELETED, self.objects[key])
        for obj in present.values():
            self._apply(EventType.MODIFIED if key_of(obj) in self.objects else EventType.ADDED, obj)
        self._synced.set()
        return listed.resource_version

    async def _watch(self, version: str) -> str:
        events = self._kube.watch(
            self._resource, self._namespace, resource_version=version, label_selector=self._label_selector
        )
        try:
            async for event in events:
                version = event.object["metadata"]["resourceVersion"]
                if event.type is not EventType.BOOKMARK:
                    self._apply(event.type, event.object)
        except WatchClosed:
            await asyncio.sleep(0)
        return version

    def _apply(self, type: EventType, obj: Json) -> None:
        key = key_of(obj)
        old = self.objects.get(key)
        if type is EventType.DELETED:
            self.objects.pop(key, None)
        else:
            self.objects[key] = obj
        for callback in self._callbacks:
            callback(type, obj, old)
