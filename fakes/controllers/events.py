"""Events of controllers. They attribute, they prove nothing: one that cannot be written is dropped, as in a cluster."""

from __future__ import annotations

from fakes.clock import WallClock
from fakes.controllers.objects import merged, name_of, namespace_of, uid_of
from harness.kube.port import EVENT, AlreadyExists, ApiError, Json, Kube, Resource


class EventRecorder:
    """Writes core/v1 Events as ``component``; equal ones in a row are counted up on the first."""

    def __init__(self, kube: Kube, wall: WallClock, component: str) -> None:
        self._kube = kube
        self._wall = wall
        self._component = component
        self._serial = 0
        self._last: dict[tuple[str, str, str], tuple[str, str, int]] = {}

    async def normal(self, resource: Resource, obj: Json, reason: str, message: str) -> None:
        await self._record("Normal", resource, obj, reason, message)

    async def warning(self, resource: Resource, obj: Json, reason: str, message: str) -> None:
        await self._record("Warning", resource, obj, reason, message)

    async def _record(self, type: str, resource: Resource, obj: Json, reason: str, message: str) -> None:
        namespace = namespace_of(obj) or "default"
        key = (uid_of(obj), reason, message)
        try:
            if key in self._last:
                await self._count(namespace, key)
            else:
                await self._create(type, resource, obj, namespace, reason, message)
        except (ApiError, ConnectionError):
            self._last.pop(key, None)

    async def _count(self, namespace: str, key: tuple[str, str, str]) -> None:
        name, _, count = self._last[key]
        await self._kube.patch(EVENT, name, {"count": count + 1, "lastTimestamp": self._wall.stamp()}, namespace)
        self._last[key] = (name, namespace, count + 1)

    async def _create(
        self, type: str, resource: Resource, obj: Json, namespace: str, reason: str, message: str
    ) -> None:
        stamp = self._wall.stamp()
        reference = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "name": name_of(obj),
            "uid": uid_of(obj),
            "resourceVersion": obj["metadata"].get("resourceVersion", ""),
        }
        if resource.namespaced:
            reference["namespace"] = namespace
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "involvedObject": reference,
            "reason": reason,
            "message": message,
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": "",
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "eventTime": None,
            "count": 1,
            "type": type,
        }
        name = await self._create_named(event, name_of(obj), namespace)
        if len(self._last) > 4096:  # a bound on memory; the oldest are the least likely to come again
            self._last.pop(next(iter(self._last)))
        self._last[(uid_of(obj), reason, message)] = (name, namespace, 1)

    async def _create_named(self, event: Json, about: str, namespace: str) -> str:
        """Names carry their time in hex. Another component may have taken the same one in the same microsecond."""
        micros = int(self._wall.now().timestamp() * 1_000_000)
        while True:
            self._serial += 1
            name = f"{about}.{micros * 1000 + self._serial % 1000:x}"
            try:
                named = merged(event, metadata={"name": name, "namespace": namespace})
                await self._kube.create(EVENT, named, namespace)
            except AlreadyExists:
                continue
            return name
