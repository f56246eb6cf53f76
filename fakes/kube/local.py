"""The Kube port in process, straight onto the store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from fakes.kube.api import Api, Write
from fakes.kube.delete_options import DeleteOptions
from fakes.kube.pods import bind, evict
from fakes.kube.scale import patch_scale, update_scale
from fakes.kube.status import bad_request
from fakes.kube.store import Store, Watch
from harness.kube.port import Json, ObjectList, Patch, PatchType, Resource, WatchEvent, eviction_options


class LocalWatch:
    """Begins when it is first asked. ``ready`` says what is there already, for whoever would else wait for it: most
    events come in rows."""

    def __init__(self, begin: Callable[[], Watch]) -> None:
        self._begin = begin
        self._watch: Watch | None = None

    def __aiter__(self) -> LocalWatch:
        return self

    def ready(self) -> WatchEvent | None:
        if self._watch is None:
            self._watch = self._begin()
        found = self._watch.poll()
        return None if found is None else WatchEvent(found[0], found[1].object)

    async def __anext__(self) -> WatchEvent:
        while (found := self.ready()) is None:
            assert self._watch is not None, "ready has begun it"
            await self._watch.wait()
        return found


class LocalKube:
    """Every call gives the other tasks a turn first, so that callers meet the races a real API server has.

    What it returns is shared with the store and with watchers: read-only, as the port says.
    """

    def __init__(self, store: Store, field_manager: str) -> None:
        self._api = Api(store)
        self._store = store
        self._write = Write(field_manager)

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Json:
        await asyncio.sleep(0)
        return self._api.get(resource, namespace, name).object

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
    ) -> ObjectList:
        await asyncio.sleep(0)
        match = self._api.predicate(resource, label_selector, field_selector)
        found = self._api.list(resource, namespace, match)
        return ObjectList(tuple(s.object for s in found), str(self._store.revision))

    def watch(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        resource_version: str,
        label_selector: str = "",
    ) -> AsyncIterator[WatchEvent]:
        def begin() -> Watch:
            match = self._api.predicate(resource, label_selector, "")
            if not resource_version.isdigit():
                raise bad_request(f"resourceVersion: Invalid value: {resource_version!r}")
            return self._store.watch(resource, int(resource_version), namespace, match)

        return LocalWatch(begin)

    async def create(self, resource: Resource, obj: Json, namespace: str | None = None) -> Json:
        await asyncio.sleep(0)
        return self._api.create(resource, namespace, obj, self._write).object

    async def update(self, resource: Resource, obj: Json, *, subresource: str | None = None) -> Json:
        await asyncio.sleep(0)
        meta = obj["metadata"]
        namespace, name = meta.get("namespace"), meta["name"]
        if subresource == "scale":
            return update_scale(self._api, resource, namespace, name, obj, self._write)
        return self._api.update(resource, namespace, name, obj, self._write, subresource).object

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Patch,
        namespace: str | None = None,
        *,
        type: PatchType = PatchType.MERGE,
        subresource: str | None = None,
    ) -> Json:
        await asyncio.sleep(0)
        if subresource == "scale":
            return patch_scale(self._api, resource, namespace, name, patch, type, self._write)
        return self._api.patch(resource, namespace, name, patch, type, self._write, subresource).object

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        grace_s: int | None = None,
        uid: str | None = None,
        propagation: str | None = None,
    ) -> None:
        await asyncio.sleep(0)
        old = self._api.get(resource, namespace, name)
        self._api.deleter.delete(resource, old, DeleteOptions(grace_s, uid, propagation=propagation))

    async def evict(self, name: str, namespace: str, *, grace_s: int | None = None, dry_run: bool = False) -> None:
        await asyncio.sleep(0)
        body: Json = {"metadata": {"name": name, "namespace": namespace}}
        if options := eviction_options(grace_s, dry_run):
            body["deleteOptions"] = options
        evict(self._api, namespace, name, body, self._write)

    async def bind(self, name: str, namespace: str, node: str) -> None:
        await asyncio.sleep(0)
        body = {"metadata": {"name": name}, "target": {"apiVersion": "v1", "kind": "Node", "name": node}}
        bind(self._api, namespace, name, body, self._write)
