"""A local copy of one resource, kept by list and watch, with callbacks on every change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Hashable, Iterator

from harness.kube.port import ApiError, EventType, Gone, Json, Kube, Resource, WatchClosed

Change = Callable[[EventType, Json, Json | None], None]
Key = tuple[str, str]

REFUSED_RETRY_S = 0.5


def key_of(obj: Json) -> Key:
    """(namespace, name); the namespace of a cluster-scoped object is empty."""
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


class Index:
    """The objects of an informer by something that is said in them: their owner, their node, their service.

    ``where`` answers None for an object that has no place in it. Within a place objects stand in the order in which
    they came there.
    """

    def __init__(self, where: Callable[[Json], Hashable | None]) -> None:
        self._where = where
        self._places: dict[Hashable, dict[Key, Json]] = {}

    def get(self, place: Hashable) -> Collection[Json]:
        """Live: take a copy where awaiting or changing goes on in between."""
        found = self._places.get(place)
        return found.values() if found is not None else ()

    def update(self, key: Key, new: Json | None, old: Json | None) -> None:
        here = self._where(new) if new is not None else None
        before = self._where(old) if old is not None else None
        if before is not None and before != here:
            left = self._places[before]
            del left[key]
            if not left:
                del self._places[before]
        if here is not None and new is not None:
            self._places.setdefault(here, {})[key] = new


class Informer:
    """``objects`` may lag the server by the events still on their way; writers rely on resourceVersion conflicts."""

    def __init__(self, kube: Kube, resource: Resource, namespace: str | None = None, label_selector: str = "") -> None:
        self._kube = kube
        self._resource = resource
        self._namespace = namespace
        self._label_selector = label_selector
        self._callbacks: list[Change] = []
        self._indexes: list[Index] = []
        self._synced = asyncio.Event()
        self.objects: dict[Key, Json] = {}

    def on_change(self, callback: Change) -> None:
        """``callback(type, new, old)`` runs synchronously in order; for DELETED ``new`` is the last state."""
        self._callbacks.append(callback)

    def index(self, where: Callable[[Json], Hashable | None]) -> Index:
        """Is up to date when the callbacks of a change run."""
        made = Index(where)
        for key, obj in self.objects.items():
            made.update(key, obj, None)
        self._indexes.append(made)
        return made

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
        for index in self._indexes:
            index.update(key, None if type is EventType.DELETED else obj, old)
        for callback in self._callbacks:
            callback(type, obj, old)
