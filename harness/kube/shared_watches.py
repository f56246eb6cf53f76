"""One watch of the server for all in a process that watch the same: each event is sent, decrypted and read once.

A server drops a watcher that reads too slowly, and a process with many watches of one resource is slow in each of them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from harness.kube.port import ApiError, ForwardingKube, Kube, Resource, WatchClosed, WatchEvent

KEPT_MAX = 4096
"""Events that are kept for those who join later; they list first, so they need few."""


class SharedWatches:
    """Watches of ``kube`` by resource, in all namespaces. Versions have to be numbers that grow, as etcd's are."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._running: dict[str, _Shared] = {}

    def join(self, resource: Resource, since: int) -> _Shared | None:
        """None when what is under way began after ``since``: the caller has to watch by itself."""
        path = resource.path(None)
        shared = self._running.get(path)
        if shared is None or shared.ended:
            shared = self._running[path] = _Shared(self._kube, resource, since)
        return shared if shared.begins <= since else None


class SharingKube(ForwardingKube):
    """``kube``, but for its watches without a selector: those are ``watches``'. What they yield is shared, so it must
    not be changed."""

    def __init__(self, kube: Kube, watches: SharedWatches) -> None:
        super().__init__(kube)
        self._watches = watches

    async def watch(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        resource_version: str,
        label_selector: str = "",
    ) -> AsyncIterator[WatchEvent]:
        alone = bool(label_selector) or not resource_version.isdigit()
        shared = None if alone else self._watches.join(resource, int(resource_version))
        if shared is None:
            events = super().watch(
                resource, namespace, resource_version=resource_version, label_selector=label_selector
            )
        else:
            events = shared.follow(int(resource_version))
        async for event in events:
            if namespace is None or event.object["metadata"].get("namespace", namespace) == namespace:
                yield event


class _Shared:
    """One watch under way and those who follow it. It ends for all when it ends, and when nobody follows any more."""

    def __init__(self, kube: Kube, resource: Resource, since: int) -> None:
        self.begins = since
        self.ended = False
        self._kept: deque[tuple[int, WatchEvent]] = deque()
        self._followers: set[asyncio.Queue[tuple[int, WatchEvent] | Exception]] = set()
        self._task = asyncio.create_task(self._run(kube, resource))

    async def follow(self, since: int) -> AsyncIterator[WatchEvent]:
        queue: asyncio.Queue[tuple[int, WatchEvent] | Exception] = asyncio.Queue()
        for kept in self._kept:
            queue.put_nowait(kept)
        self._followers.add(queue)
        try:
            while True:
                item = await queue.get()
                if isinstance(item, Exception):
                    raise item
                version, event = item
                if version > since:
                    yield event
        finally:
            self._followers.discard(queue)
            if not self._followers:
                self.ended = True
                self._task.cancel()

    async def _run(self, kube: Kube, resource: Resource) -> None:
        try:
            async for event in kube.watch(resource, resource_version=str(self.begins)):
                item = int(event.object["metadata"]["resourceVersion"]), event
                self._kept.append(item)
                if len(self._kept) > KEPT_MAX:
                    self.begins, _ = self._kept.popleft()
                for queue in self._followers:
                    queue.put_nowait(item)
            self._end(WatchClosed(f"the watch of {resource.plural} ended"))
        except (ApiError, ConnectionError, WatchClosed) as error:
            self._end(error)

    def _end(self, why: Exception) -> None:
        self.ended = True
        for queue in self._followers:
            queue.put_nowait(why)
