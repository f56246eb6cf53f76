"""Events as client-go's older recorder writes them: counted when repeated, dropped when there are too many."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Protocol

from fakes.clock import WallClock
from harness.kube.port import EVENT, ApiError, Json, PatchType, Resource

BURST = 25
REFILL_S = 300.0
"""The recorder's spam filter: per object a burst of 25, then one in 300 s of the clock."""
WAITING_MAX = 1000
REMEMBERED_MAX = 4096
"""As many objects and event series are remembered for counting; the oldest are forgotten first."""


class EventWriter(Protocol):
    """The part of the Kube port that events need."""

    async def create(self, resource: Resource, obj: Json, namespace: str | None = None) -> Json: ...

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Json,
        namespace: str | None = None,
        *,
        type: PatchType = PatchType.MERGE,
        subresource: str | None = None,
    ) -> Json: ...


@dataclass(slots=True)
class _Series:
    name: str
    namespace: str
    count: int = 1


@dataclass(slots=True)
class _Bucket:
    tokens: float
    refilled_s: float


@dataclass(slots=True)
class EventRecorder:
    """``event`` never waits and never fails; ``run`` writes what it was given, in order."""

    kube: EventWriter
    wall: WallClock
    component: str
    host: str = ""
    _queue: asyncio.Queue[tuple[Json, str, str, str, str]] = field(default_factory=lambda: asyncio.Queue(WAITING_MAX))
    _series: dict[tuple[str, str, str, str, str], _Series] = field(default_factory=dict)
    _buckets: dict[str, _Bucket] = field(default_factory=dict)
    _last_id: int = 0

    def event(self, obj: Json, type: str, reason: str, message: str, field_path: str = "") -> None:
        """``type`` is Normal or Warning; ``field_path`` names a part of the object (``spec.containers{c}``). Beyond
        the limits the event is dropped, as the real recorder does."""
        meta = obj["metadata"]
        key = meta.get("uid") or f"{obj['kind']}/{meta.get('namespace', '')}/{meta['name']}"
        if self._queue.full() or not self._allowed(key):
            return
        self._queue.put_nowait((obj, type, reason, message, field_path))

    async def run(self) -> None:
        while True:
            obj, type, reason, message, field_path = await self._queue.get()
            try:
                await self._write(obj, type, reason, message, field_path)
            except (ApiError, ConnectionError):
                continue  # events are best effort, in the real recorder too

    def _allowed(self, key: str) -> bool:
        now_s = asyncio.get_running_loop().time()
        bucket = self._buckets.setdefault(key, _Bucket(BURST, now_s))
        bucket.tokens = min(BURST, bucket.tokens + (now_s - bucket.refilled_s) / REFILL_S)
        bucket.refilled_s = now_s
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        if len(self._buckets) > REMEMBERED_MAX:
            self._buckets.pop(next(iter(self._buckets)))
        return True

    async def _write(self, obj: Json, type: str, reason: str, message: str, field_path: str) -> None:
        meta = obj["metadata"]
        key = (meta.get("uid", meta["name"]), type, reason, message, field_path)
        stamp = self.wall.stamp()
        if series := self._series.get(key):
            series.count += 1
            change = {"count": series.count, "lastTimestamp": stamp}
            await self.kube.patch(EVENT, series.name, change, series.namespace)
            return
        namespace = meta.get("namespace") or "default"
        series = _Series(f"{meta['name']}.{self._next_id():x}", namespace)
        source = {"component": self.component, "host": self.host} if self.host else {"component": self.component}
        await self.kube.create(
            EVENT,
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"name": series.name, "namespace": namespace},
                "involvedObject": _reference(obj, field_path),
                "reason": reason,
                "message": message,
                "source": source,
                "firstTimestamp": stamp,
                "lastTimestamp": stamp,
                "count": 1,
                "type": type,
                "eventTime": None,
                "reportingComponent": self.component,
                "reportingInstance": self.host,
            },
            namespace,
        )
        self._series[key] = series
        if len(self._series) > REMEMBERED_MAX:
            self._series.pop(next(iter(self._series)))

    def _next_id(self) -> int:
        """Nanoseconds of the wall clock as in real names, pushed on where two fall on the same one."""
        self._last_id = max(self._last_id + 1, int(self.wall.now().timestamp() * 1e6) * 1000)
        return self._last_id


def _reference(obj: Json, field_path: str) -> Json:
    meta = obj["metadata"]
    fields = {name: meta[name] for name in ("namespace", "name", "uid", "resourceVersion") if name in meta}
    if field_path:
        fields["fieldPath"] = field_path
    return {"kind": obj["kind"], "apiVersion": obj["apiVersion"], **fields}
