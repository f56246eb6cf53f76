"""A client's way to the API server, with a switch: errors, delays, silence and cut watches for this client alone.

In real life such trouble sits in the server, in a proxy or in the client's own process; a client cannot tell. Whoever
watches the cluster to judge it goes through no door, so what it records stays whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from random import Random

from fakes.kube.local import LocalWatch
from fakes.timing import Timing
from harness.kube.port import (
    POD,
    ForwardingKube,
    Gone,
    Kube,
    Resource,
    WatchClosed,
    WatchEvent,
    api_error,
)

_MESSAGES = {
    429: ("TooManyRequests", "the server has received too many requests and has asked us to try again later"),
    500: ("InternalError", "Internal error occurred: etcdserver: request timed out"),
}
_WEBHOOK = 'failed calling webhook "pods.gpu-harness.dev": connect: connection refused'
HOW = ("429", "500", "timeout", "slow")


@dataclass(frozen=True, slots=True)
class Errors:
    """A share of ``ratio`` of the calls is answered so. ``slow`` and ``timeout`` wait ``delay_s`` scenario seconds
    first; after a timeout the client knows nothing, after a slow answer all is well."""

    how: str
    ratio: float
    delay_s: float


@dataclass(slots=True)
class Door:
    """``parent`` is the door of the process that this client is a part of: what is wrong there is wrong here."""

    rng: Random
    timing: Timing
    parent: Door | None = None
    errors: Errors | None = None
    webhook_down: bool = False
    _open: asyncio.Event = field(default_factory=asyncio.Event)
    watches: set[_Watching] = field(default_factory=set)
    children: list[Door] = field(default_factory=list)
    watches_begun: int = 0

    def __post_init__(self) -> None:
        self._open.set()
        if self.parent is not None:
            self.parent.children.append(self)

    def stop(self) -> None:
        """As a process that is stopped: its calls reach nobody until it goes on."""
        self._open.clear()

    def go_on(self) -> None:
        self._open.set()

    def cut_watches(self, *, gone: bool) -> None:
        """``gone``: the server has forgotten the past, so the client must list again."""
        for watching in [w for door in (self, *self.children) for w in door.watches]:
            watching.cut(gone)

    async def enter(self, resource: Resource, verb: str) -> None:
        """Raises what the client gets in place of an answer. ``verb``: a subresource's name for a call of that."""
        if self.parent is not None:
            await self.parent.enter(resource, verb)
        if not self._open.is_set():
            await self._open.wait()
        if self.webhook_down and verb == "create" and resource == POD:
            raise _error(500, "InternalError", _WEBHOOK)
        errors = self.errors
        if errors is None or (errors.ratio < 1 and self.rng.random() >= errors.ratio):
            return
        if errors.how in ("slow", "timeout"):
            await asyncio.sleep(self.timing.clock_s(errors.delay_s))
        if errors.how == "timeout":
            raise ConnectionError("the API server did not answer in time")
        if errors.how != "slow":
            raise _error(int(errors.how), *_MESSAGES[int(errors.how)])


class _Watching:
    """One watch under way, cut by whoever holds the door."""

    __slots__ = ("_gone", "_inside", "_task")

    def __init__(self) -> None:
        self._task = asyncio.current_task()
        self._inside = False
        self._gone: bool | None = None

    def cut(self, gone: bool) -> None:
        if self._gone is None:
            self._gone = gone
            if self._inside and self._task is not None:
                self._task.cancel()

    async def next(self, events: AsyncIterator[WatchEvent]) -> WatchEvent:
        self._check()
        self._inside = True
        self._task = asyncio.current_task()
        try:
            return await anext(events)
        except asyncio.CancelledError:
            # Ours if we were cut and nobody else asked the task to end as well.
            if self._gone is not None and self._task is not None and self._task.uncancel() == 0:
                self._check()
            raise
        finally:
            self._inside = False

    def ready(self, events: LocalWatch) -> WatchEvent | None:
        """What need not be waited for."""
        if self._gone is not None:
            self._check()
        return events.ready()

    def _check(self) -> None:
        if self._gone:
            raise Gone(410, "Expired", "too old resource version")
        if self._gone is False:
            raise WatchClosed("the connection of the watch was cut")


class DoorKube(ForwardingKube):
    """The Kube port through a door."""

    def __init__(self, kube: Kube, door: Door) -> None:
        super().__init__(kube)
        self._door = door

    async def enter(
        self, verb: str, resource: Resource, namespace: str | None, name: str = "", subresource: str = ""
    ) -> None:
        await self._door.enter(resource, subresource or verb)

    async def watch(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        resource_version: str,
        label_selector: str = "",
    ) -> AsyncIterator[WatchEvent]:
        await self._door.enter(resource, "watch")
        events = self._kube.watch(resource, namespace, resource_version=resource_version, label_selector=label_selector)
        watching = _Watching()
        self._door.watches.add(watching)
        self._door.watches_begun += 1
        try:
            while True:
                if isinstance(events, LocalWatch) and (here := watching.ready(events)) is not None:
                    yield here
                    continue
                try:
                    event = await watching.next(events)
                except StopAsyncIteration:
                    return
                yield event
        finally:
            self._door.watches.discard(watching)


class Doors:
    """One door per client of a world, by its name: ``process`` or ``process/part``."""

    def __init__(self, seed: int, timing: Timing) -> None:
        self._seed = seed
        self._timing = timing
        self._doors: dict[str, Door] = {}

    def names(self) -> list[str]:
        return list(self._doors)

    def watches_begun(self) -> dict[str, int]:
        """By process."""
        return {
            name: door.watches_begun + sum(child.watches_begun for child in door.children)
            for name, door in self._doors.items()
            if door.parent is None
        }

    def of(self, client: str) -> Door:
        if client not in self._doors:
            process, _, part = client.partition("/")
            parent = self.of(process) if part else None
            self._doors[client] = Door(Random(f"{self._seed}:door-{client}"), self._timing, parent)
        return self._doors[client]


def _error(status: int, reason: str, message: str) -> Exception:
    details = {"retryAfterSeconds": 1} if status == 429 else {}
    body = {"kind": "Status", "reason": reason, "message": message, "code": status, "details": details}
    return api_error(status, body)
