"""The objects, their revisions and the watch window. Nothing here knows what a Pod is.

A stored object is never changed in place: every write makes a new version, so readers and watchers share what they are
handed, and its serialised bytes are made at most once.
"""

from __future__ import annotations

import asyncio
import bisect
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from random import Random

from fakes.clock import WallClock
from fakes.config import PlantedBug
from fakes.kube.bootstrap import first_objects
from fakes.kube.codec import clone, dump
from fakes.kube.kinds import Key, Kind, Kinds
from fakes.kube.selectors import Predicate
from fakes.kube.status import expired, version_too_large
from harness.kube.port import EventType, Json, Resource, WatchClosed

FORGETS_AT = 150
WINDOW = 4096
"""Changes kept per resource for watches that resume; older resourceVersions are answered with 410."""

Name = tuple[str, str]
"""(namespace, name); the namespace of a cluster-scoped object is empty."""


@dataclass(slots=True, eq=False)
class Stored:
    """One version of one object."""

    object: Json
    version: int
    made: bytes | None = None
    """What ``item`` answers, once it was asked."""

    def data(self) -> bytes:
        item, head = self.item(), _head(self.object)
        return item if item.startswith(head) else head + item[1:]

    def item(self) -> bytes:
        """The same within a list, which says the kind for all: what begins every object is left out."""
        if self.made is None:
            whole, head = dump(self.object), _head(self.object)
            self.made = b"{" + whole[len(head) :] if whole.startswith(head) else whole
        return self.made

    def tampered(self) -> bool:
        """Whether somebody changed the object in place since its bytes were made."""
        return self.made is not None and self.made != Stored(self.object, self.version).item()


def _head(obj: Json) -> bytes:
    return f'{{"kind":"{obj["kind"]}","apiVersion":"{obj["apiVersion"]}",'.encode()


@dataclass(frozen=True, slots=True)
class Change:
    version: int
    type: EventType
    now: Stored
    before: Stored | None


@dataclass(slots=True, eq=False)
class Shelf:
    """One resource: its objects and its recent changes."""

    window: int
    objects: dict[Name, Stored] = field(default_factory=dict)
    log: list[Change] = field(default_factory=list)
    dropped: int = 0
    """How many changes have left the log, so that ``dropped + i`` is the place of ``log[i]`` for ever."""
    floor: int = 0
    """Version of the newest change that has left the log."""
    waiters: dict[asyncio.Future[None], None] = field(default_factory=dict)
    """In the order in which they came, for the order in which they are woken must not depend on addresses in memory."""
    _sorted: list[Name] | None = None
    _listed: dict[str, list[Stored]] = field(default_factory=dict)
    """By namespace (empty: all), until the next change."""
    forgets_at: int | None = None
    """A planted bug: how many changes are kept before all are lost at once, as when a server is replaced."""

    def names(self) -> list[Name]:
        """In the order in which a list answers."""
        if self._sorted is None:
            self._sorted = sorted(self.objects)
        return self._sorted

    def listed(self, namespace: str) -> list[Stored]:
        """In that order, to look at only."""
        found = self._listed.get(namespace)
        if found is None:
            names, objects = self.names(), self.objects
            found = [objects[n] for n in names if not namespace or n[0] == namespace]
            self._listed[namespace] = found
        return found

    def apply(self, name: Name, change: Change) -> None:
        if self._listed:
            self._listed.clear()
        if change.type is EventType.DELETED:
            del self.objects[name]
            self._sorted = None
        else:
            if name not in self.objects:
                self._sorted = None
            self.objects[name] = change.now
        self.log.append(change)
        if len(self.log) >= 2 * self.window:
            gone = len(self.log) - self.window
            self.floor = self.log[gone - 1].version
            del self.log[:gone]
            self.dropped += gone
        elif self.forgets_at is not None and len(self.log) >= self.forgets_at:
            self.floor = change.version
            self.dropped += len(self.log)
            self.log.clear()
        self.wake()

    def wake(self) -> None:
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_result(None)
        self.waiters.clear()


class Watch:
    """A reader of one resource's changes. It holds a place in the log and no buffer: a slow one costs nobody anything
    and is told 410 when the window has passed it by."""

    def __init__(self, shelf: Shelf, since: int, namespace: str | None, match: Predicate | None) -> None:
        if since < shelf.floor:
            raise expired(f"too old resource version: {since} ({shelf.floor})")
        self._shelf = shelf
        self._place = shelf.dropped + bisect.bisect_right(shelf.log, since, key=lambda c: c.version)
        self._namespace = namespace
        self._match = match
        self._closed = False
        self.version = since

    async def next(self) -> tuple[EventType, Stored]:
        """The next change that concerns this watch. Raises ``Gone``, or ``WatchClosed`` after ``close``."""
        while True:
            found = self.poll()
            if found is not None:
                return found
            await self.wait()

    async def wait(self, limit_s: float | None = None) -> None:
        """Until the resource has changed, for at most ``limit_s``. Raises ``WatchClosed`` after ``close``."""
        if self._closed:
            raise WatchClosed("the server ended the watch")
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self._shelf.waiters[waiter] = None
        limit = loop.call_later(limit_s, _let_go, waiter) if limit_s is not None else None
        try:
            await waiter
        finally:
            self._shelf.waiters.pop(waiter, None)
            if limit is not None:
                limit.cancel()
        if self._closed:
            raise WatchClosed("the server ended the watch")

    def poll(self) -> tuple[EventType, Stored] | None:
        """As ``next``, but None where ``next`` would wait."""
        shelf = self._shelf
        if self._place < shelf.dropped:
            raise expired(f"too old resource version: {self.version} ({shelf.floor})")
        while (index := self._place - shelf.dropped) < len(shelf.log):
            change = shelf.log[index]
            self._place += 1
            self.version = change.version
            found = self._seen(change)
            if found is not None:
                return found
        return None

    def close(self) -> None:
        self._closed = True
        self._shelf.wake()

    def _seen(self, change: Change) -> tuple[EventType, Stored] | None:
        """An object that leaves the selection is DELETED for this watch, one that enters it ADDED."""
        if self._namespace and change.now.object["metadata"].get("namespace") != self._namespace:
            return None
        if self._match is None:
            return change.type, change.now
        is_in = change.type is not EventType.DELETED and self._match(change.now.object)
        was_in = change.before is not None and self._match(change.before.object)
        if is_in:
            return (EventType.MODIFIED if was_in else EventType.ADDED), change.now
        if not was_in:
            return None
        if change.type is EventType.DELETED or change.before is None:
            return EventType.DELETED, change.now
        last = clone(change.before.object)
        last["metadata"]["resourceVersion"] = str(change.version)
        return EventType.DELETED, Stored(last, change.version)


def _let_go(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


class Store:
    """All objects of one world. Every write is one revision, whatever its resource."""

    def __init__(
        self, wall: WallClock, rng: Random, bugs: Collection[PlantedBug] = (), *, window: int = WINDOW
    ) -> None:
        self.bugs = frozenset(bugs)
        self.wall = wall
        self._made = wall.now()
        self.rng = rng
        self.revision = 1
        self.kinds = Kinds()
        forgets = FORGETS_AT if PlantedBug.API_LOSES_WATCH_HISTORY in self.bugs else None
        self._window = window
        self._shelves: dict[Key, Shelf] = {key: Shelf(window, forgets_at=forgets) for key in self.kinds.stored}
        for resource, obj in first_objects(wall, rng):
            self.put(resource, obj)

    def age_s(self) -> float:
        """Clock seconds since it was made."""
        return (self.wall.now() - self._made).total_seconds()

    def serve(self, kind: Kind) -> None:
        """A kind that a CRD defines."""
        self.kinds.add(kind)
        if kind.view is None and kind.key not in self._shelves:
            self._shelves[kind.key] = Shelf(self._window, floor=self.revision)

    def withdraw(self, kind: Kind) -> None:
        """The kind and all its objects; who watches sees them deleted."""
        if kind.view is None and kind.key in self._shelves:
            for stored in list(self.items(kind.resource)):
                self.remove(kind.resource, stored.object)
            del self._shelves[kind.key]
        self.kinds.remove(kind)

    def find(self, resource: Resource, namespace: str, name: str) -> Stored | None:
        return self._shelf(resource).objects.get((namespace, name))

    def items(self, resource: Resource, namespace: str | None = None) -> Sequence[Stored]:
        """In the order in which a list answers."""
        return self._shelf(resource).listed(namespace or "")

    def names(self, resource: Resource) -> list[Name]:
        return self._shelf(resource).names()

    def put(self, resource: Resource, obj: Json) -> Stored:
        """Adds or replaces. The store owns ``obj`` from here on and writes its resourceVersion."""
        name = obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
        before = self.find(resource, *name)
        stored = self._stamped(obj)
        type = EventType.MODIFIED if before else EventType.ADDED
        self._shelf(resource).apply(name, Change(stored.version, type, stored, before))
        return stored

    def remove(self, resource: Resource, obj: Json) -> Stored:
        """Takes the object away; watchers see ``obj`` as its last state, at the revision of its removal."""
        name = obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
        before = self.find(resource, *name)
        stored = self._stamped(clone(obj))
        self._shelf(resource).apply(name, Change(stored.version, EventType.DELETED, stored, before))
        return stored

    def watch(
        self, resource: Resource, since: int, namespace: str | None = None, match: Predicate | None = None
    ) -> Watch:
        if since > self.revision:
            raise version_too_large(since, self.revision)
        return Watch(self._shelf(resource), since, namespace, match)

    def tampered(self) -> list[str]:
        """Objects that somebody changed in place after they were stored, as far as their bytes were made before."""
        return [
            f"{key[1]} {'/'.join(name)}"
            for key, shelf in self._shelves.items()
            for name, stored in shelf.objects.items()
            if stored.tampered()
        ]

    def _stamped(self, obj: Json) -> Stored:
        self.revision += 1
        obj["metadata"]["resourceVersion"] = str(self.revision)
        if next(iter(obj)) != "kind":
            obj = {"kind": obj["kind"], "apiVersion": obj["apiVersion"]} | obj
        return Stored(obj, self.revision)

    def _shelf(self, resource: Resource) -> Shelf:
        found = self._shelves.get((resource.group, resource.plural))
        if found is None:  # a second shape of what is stored elsewhere
            view = self.kinds.served[resource.group, resource.version, resource.plural].view
            found = self._shelves[(view.of.group, view.of.plural) if view else (resource.group, resource.plural)]
        return found
