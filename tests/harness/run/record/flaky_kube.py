"""The embedded API server behind a connection that can be cut, refused or too old, for the recorder to live through."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from random import Random

from fakes.clock import WallClock
from fakes.kube.local import LocalKube
from fakes.kube.store import Store
from harness.kube.port import EventType, Gone, Json, NotFound, ObjectList, Resource, WatchClosed, WatchEvent


class LoopClock:
    """History time is the loop's time, so that a test with a virtual loop is exact."""

    def now_ns(self) -> int:
        return round(asyncio.get_running_loop().time() * 1e9)


class FlakyKube(LocalKube):
    def __init__(self) -> None:
        self.wall = WallClock(datetime(2026, 1, 1, tzinfo=UTC))
        super().__init__(Store(self.wall, Random(1)), "test")
        self.absent: set[str] = set()
        """Kinds that are not served."""
        self.expired: set[str] = set()
        """Kinds whose next watch is told that its version is too old."""
        self.closing: set[str] = set()
        """Kinds whose next watch is closed at once."""
        self.deaf: set[str] = set()
        """Kinds whose watches that are open tell nothing any more."""
        self.waiting: dict[str, str] = {}
        """Answer of custom.metrics, by pod."""
        self.version = "v1.98.0"
        self.lists = 0
        self.bookmark_s: float | None = None
        """How often an idle watch says that it is there."""
        self._awake = asyncio.Event()
        self._awake.set()
        self._down = False
        self._cut = asyncio.Event()

    def cut_watches(self) -> None:
        """Breaks every watch that is open; new ones work."""
        self._cut.set()
        self._cut = asyncio.Event()

    def freeze(self) -> None:
        """Connections stay open, and nothing comes."""
        self._awake.clear()

    def thaw(self) -> None:
        self._awake.set()

    def deafen(self, kind: str) -> None:
        self.deaf.add(kind)

    def go_down(self) -> None:
        self._down = True
        self.cut_watches()

    def come_up(self) -> None:
        self._down = False

    async def time_of_day(self) -> datetime:
        self._check()
        return self.wall.now().replace(microsecond=0)

    async def raw(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        self._check()
        if path == "/version":
            return {"gitVersion": self.version}
        if not self.waiting:
            raise NotFound(404, "NotFound", "no metric")
        return {"items": [{"describedObject": {"name": pod}, "value": value} for pod, value in self.waiting.items()]}

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
    ) -> ObjectList:
        self._check(resource)
        await self._awake.wait()
        self.lists += 1
        return await super().list(resource, namespace, label_selector=label_selector, field_selector=field_selector)

    async def watch(
        self, resource: Resource, namespace: str | None = None, *, resource_version: str, label_selector: str = ""
    ) -> AsyncIterator[WatchEvent]:
        self._check(resource)
        if resource.kind in self.expired:
            self.expired.discard(resource.kind)
            raise Gone(410, "Expired", "too old resource version")
        if resource.kind in self.closing:
            self.closing.discard(resource.kind)
            raise WatchClosed("the server ended the watch")
        cut = asyncio.ensure_future(self._cut.wait())
        inner = super().watch(resource, namespace, resource_version=resource_version, label_selector=label_selector)
        try:
            while True:
                step = asyncio.ensure_future(anext(inner))
                while not step.done() and not cut.done():
                    await asyncio.wait({step, cut}, timeout=self.bookmark_s, return_when=asyncio.FIRST_COMPLETED)
                    await self._awake.wait()
                    if not step.done() and not cut.done():
                        version = str(self._store.revision)
                        yield WatchEvent(EventType.BOOKMARK, {"metadata": {"resourceVersion": version}})
                if resource.kind in self.deaf:
                    await cut
                if cut.done():
                    step.cancel()
                    raise WatchClosed("the connection broke")
                yield step.result()
        finally:
            cut.cancel()

    def _check(self, resource: Resource | None = None) -> None:
        if self._down:
            raise ConnectionRefusedError("connection refused")
        if resource is not None and resource.kind in self.absent:
            raise NotFound(404, "NotFound", "the server could not find the requested resource")
