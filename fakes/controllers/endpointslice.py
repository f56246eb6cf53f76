"""Keeps the EndpointSlices of every Service that has a selector."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field

from fakes.clock import WallClock
from fakes.config import PlantedBug
from fakes.controllers.controller import Reconciler, run_controller
from fakes.controllers.endpoints import (
    MANAGED_BY_LABEL,
    MANAGER,
    SERVICE_LABEL,
    ZONE_LABEL,
    belongs,
    endpoint,
    selects,
    slice_ports,
)
from fakes.controllers.informer import Informer, Key, key_of
from fakes.controllers.objects import (
    condition_status,
    controller_reference,
    is_terminal,
    is_terminating,
    merged,
    name_of,
    namespace_of,
    node_of,
    pod_ip,
)
from fakes.controllers.slices import Content, Shelf, SlicePlan, Wanted
from fakes.timing import Timing
from harness.kube.port import (
    ENDPOINT_SLICE,
    NODE,
    POD,
    SERVICE,
    ApiError,
    EventType,
    Json,
    Kube,
    NotFound,
)

LATE_S = 60
"""Scenario seconds by which a pod that goes stays an endpoint, under the planted bug."""
FULL_AT = 4
"""Endpoints beyond which none is added, under another."""


@dataclass(slots=True)
class _Book:
    """What is known of one Service. ``stale``: everything has to be looked at again; else only the pods ``changed``."""

    shelf: Shelf = field(default_factory=Shelf)
    wanted: dict[str, Wanted] = field(default_factory=dict)
    changed: dict[str, None] = field(default_factory=dict)
    stale: bool = True


class EndpointSliceController:
    """``wall`` stamps nothing yet: slices carry no times of their own but the server's."""

    def __init__(
        self, kube: Kube, wall: WallClock, timing: Timing | None = None, bugs: Collection[PlantedBug] = ()
    ) -> None:
        self._kube = kube
        self._late_s = (timing or Timing()).clock_s(LATE_S) if PlantedBug.ENDPOINT_REMOVED_LATE in bugs else 0.0
        self._full_at = FULL_AT if PlantedBug.ENDPOINT_NEVER_ADDED in bugs else None
        self._wall = wall
        self._services = Informer(kube, SERVICE)
        self._pods = Informer(kube, POD)
        self._slices = Informer(kube, ENDPOINT_SLICE, label_selector=f"{MANAGED_BY_LABEL}={MANAGER}")
        self._nodes = Informer(kube, NODE)
        self._services_of = self._services.index(namespace_of)
        self._pods_of = self._pods.index(namespace_of)
        self._pods_on = self._pods.index(lambda pod: node_of(pod) or None)
        self._slices_of = self._slices.index(_service_of)
        self._zones: dict[str, str] = {}
        self._books: dict[Key, _Book] = {}
        self._loop: Reconciler[Key] = Reconciler(self._sync)
        self._services.on_change(self._service_changed)
        self._pods.on_change(self._pod_changed)
        self._slices.on_change(self._slice_changed)
        self._nodes.on_change(self._node_changed)

    async def run(self) -> None:
        await run_controller((self._nodes, self._pods, self._slices, self._services), self._loop.run)

    def _service_changed(self, type: EventType, new: Json, old: Json | None) -> None:
        self._look_again(key_of(new))

    def _look_again(self, service: Key) -> None:
        """At all of it: somebody else's hand was in it."""
        self._books.setdefault(service, _Book()).stale = True
        self._loop.queue.add(service)

    def _pod_changed(self, type: EventType, new: Json, old: Json | None) -> None:
        if type is EventType.MODIFIED and old is not None and _seen_state(new) == _seen_state(old):
            return
        if self._late_s and (is_terminating(new) or type is EventType.DELETED):
            asyncio.get_running_loop().call_later(self._late_s, self._note, new, old)
        else:
            self._note(new, old)

    def _note(self, new: Json, old: Json | None) -> None:
        moved = old is not None and new["metadata"].get("labels") != old["metadata"].get("labels")
        for service in self._services_of.get(namespace_of(new)):
            if selects(service, new) or (moved and old is not None and selects(service, old)):
                self._books.setdefault(key_of(service), _Book()).changed[name_of(new)] = None
                self._loop.queue.add(key_of(service))

    def _node_changed(self, type: EventType, new: Json, old: Json | None) -> None:
        name = name_of(new)
        zone = None if type is EventType.DELETED else (new["metadata"].get("labels") or {}).get(ZONE_LABEL)
        if self._zones.get(name) == zone:
            return
        if zone is None:
            self._zones.pop(name, None)
        else:
            self._zones[name] = zone
        for pod in self._pods_on.get(name):
            self._pod_changed(EventType.ADDED, pod, None)

    def _slice_changed(self, type: EventType, new: Json, old: Json | None) -> None:
        service = _service_of(new)
        book = self._books.get(service)
        if book is None:
            return
        if type is EventType.DELETED:
            if name_of(new) in book.shelf.slices:
                book.shelf.drop(name_of(new))
                self._look_again(service)
        elif _version(new) > _version(book.shelf.slices.get(name_of(new))):
            self._look_again(service)

    async def _sync(self, key: Key) -> None:
        service, book = self._services.objects.get(key), self._books.setdefault(key, _Book())
        if service is None:
            del self._books[key]
            return
        if is_terminating(service) or not service["spec"].get("selector"):
            return  # the slices of a deleted service go with it, by owner reference
        if book.stale:
            self._read_all(key, service, book)
        changed, book.changed = book.changed, {}
        for pod in changed:
            self._want(key, service, book, pod)
        plan = book.shelf.plan(changed, book.wanted)
        try:
            await self._write(key, service, book.shelf, plan)
        except (ApiError, ConnectionError):
            book.stale = True
            raise

    def _read_all(self, key: Key, service: Json, book: _Book) -> None:
        book.stale = False
        found = {name_of(s): s for s in self._slices_of.get(key) if not is_terminating(s)}
        for name, made in book.shelf.slices.items():
            if name not in found or _version(made) > _version(found[name]):
                found[name] = made  # written by us, and not seen in the cache yet
        book.shelf.load(found.values())
        pods = [name_of(p) for p in self._pods_of.get(key[0]) if selects(service, p)]
        book.changed |= dict.fromkeys((*book.shelf.pods, *book.wanted, *pods))

    def _want(self, key: Key, service: Json, book: _Book, name: str) -> None:
        pod = self._pods.objects.get((key[0], name))
        if self._full_at is not None and name not in book.wanted and len(book.wanted) >= self._full_at:
            return
        if pod is not None and belongs(pod) and selects(service, pod):
            book.wanted[name] = Wanted(slice_ports(service, pod), endpoint(pod, service, self._zones))
        else:
            book.wanted.pop(name, None)

    async def _write(self, key: Key, service: Json, shelf: Shelf, plan: SlicePlan) -> None:
        for content in plan.create:
            shelf.put(await self._kube.create(ENDPOINT_SLICE, _new_slice(key, service, content), key[0]))
        for old, content in plan.update:
            ports: list[Json] = [dict(port) for port in content.ports]
            shelf.put(await self._kube.update(ENDPOINT_SLICE, merged(old, endpoints=content.endpoints, ports=ports)))
        for old in plan.delete:
            shelf.drop(name_of(old))
            try:
                await self._kube.delete(ENDPOINT_SLICE, name_of(old), namespace_of(old))
            except NotFound:
                continue


def _new_slice(key: Key, service: Json, content: Content) -> Json:
    own_labels = service["metadata"].get("labels") or {}
    return {
        "apiVersion": ENDPOINT_SLICE.api_version,
        "kind": ENDPOINT_SLICE.kind,
        "metadata": {
            "generateName": f"{name_of(service)}-",
            "namespace": key[0],
            "labels": {**own_labels, SERVICE_LABEL: key[1], MANAGED_BY_LABEL: MANAGER},
            "ownerReferences": [controller_reference(SERVICE, service)],
        },
        "addressType": "IPv4",
        "endpoints": content.endpoints,
        "ports": [dict(port) for port in content.ports],
    }


def _service_of(made: Json) -> Key:
    return namespace_of(made), (made["metadata"].get("labels") or {}).get(SERVICE_LABEL, "")


def _version(made: Json | None) -> int:
    """Versions of one server are comparable numbers; 0 for a slice that is not known."""
    return 0 if made is None else int(made["metadata"]["resourceVersion"])


def _seen_state(pod: Json) -> tuple[object, ...]:
    """What of a pod a slice shows."""
    return (
        pod["metadata"].get("labels"),
        is_terminating(pod),
        is_terminal(pod),
        condition_status(pod, "Ready"),
        pod_ip(pod),
        node_of(pod),
    )
