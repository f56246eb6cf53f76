"""One resource, listed and watched into the history for as long as the run lasts.

What counts as blind: a watch that breaks and is taken up again from its last resourceVersion has missed nothing. A list
after the start has: whatever came and went in between was never seen, so it is written down as a gap. So has a watch
that says nothing for longer than the server's bookmarks let it: what a server tells after a freeze, it tells too late.
But there are none of a resource of which there was no event since the server started (kubernetes v1.37,
k8s.io/apiserver storage/cacher, ``dispatchBookmarks``), nor of Events, which have no watch cache. So a silent watch is
believed where a new list shows what is known, and a new watch from its last version has nothing to tell up to there.
The end of the recording waits for no bookmark: the server is asked once more, and what it does not confirm is a gap.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from typing import Protocol

from harness.clock import NS_PER_S
from harness.hiding import without_secrets
from harness.history.tables import ObjectEventType
from harness.history.writer import ObjectsWriter
from harness.kube.port import (
    ApiError,
    EventType,
    Gone,
    Json,
    Kube,
    NotFound,
    ObjectList,
    Resource,
    WatchClosed,
    WatchEvent,
)
from harness.run.record.state import LiveState

UNREACHABLE_NS = NS_PER_S
"""A server that is away for longer than this made us blind; a shorter absence is bridged by the watch itself."""
_RETRY_S = 0.1
_ABSENT_RETRY_S = 5.0
_TELLS_WITHIN_S = 2.0
"""A server sends what a new watch has missed at once."""
ENDS_WITHIN_S = 5.0
"""What a server has to confirm up to the end, a doubt included; one that is frozen costs that much once."""
_LOOKS_EVERY_S = 0.02


class _Silent(Exception):
    """The watch is open and says nothing."""


_log = logging.getLogger(__name__)


class Clock(Protocol):
    """History time; ``harness.clock.RunClock`` outside virtual time."""

    def now_ns(self) -> int: ...


class ResourceWatch:
    """``run`` goes on until it is cancelled, whatever happens; then ``close`` accounts for what was not seen."""

    def __init__(
        self,
        kube: Kube,
        resource: Resource,
        clock: Clock,
        objects: ObjectsWriter,
        state: LiveState,
        on_absent: Callable[[Resource], None],
        silent_s: float | None = None,
    ) -> None:
        """``silent_s``: after so many seconds without a word, not even a bookmark, a watch is given up as frozen."""
        self._kube = kube
        self._resource = resource
        self._clock = clock
        self._objects = objects
        self._state = state
        self._on_absent = on_absent
        self._silent_s = silent_s
        self._version: str | None = None
        self._contact_ns = clock.now_ns()
        self._failing_since_ns: int | None = None
        self._blind_since_ns: int | None = None
        self._blind_reason = ""
        self._absent_ns: int | None = None
        self._there: dict[str, str] = {}
        """Versions of the objects that are known to be there, by uid."""
        self._doubt = ""
        """Why the watch may be frozen, until a list shows whether it is."""
        self._unconfirmed = ""
        """Why nobody knows whether the watch told all up to the end."""
        self.known = asyncio.Event()
        """Set once the resource was listed, or is known to be absent."""
        self.error: Exception | None = None
        """The last thing that went wrong, while it is wrong."""

    @property
    def resource(self) -> Resource:
        return self._resource

    async def run(self) -> None:
        while True:
            started_ns = self._clock.now_ns()
            try:
                if self._version is None:
                    await self._list()
                elif self._doubt:
                    await self._look_again()
                else:
                    await self._follow(self._version)
            except NotFound:
                await self._is_absent()
            except Gone as error:
                self._go_blind(self._contact_ns, f"410 Gone: {error.message}")
            except _Silent as error:
                self._doubt = str(error)
            except WatchClosed:
                # The server had answered, so everything up to now was seen or will be, from the last version on. Not so
                # while in doubt: what the silence hid is still to be asked, and began when the server last spoke.
                if not self._doubt:
                    self._contact()
            except (ConnectionError, ApiError) as error:
                self._failed(error)
            except OSError as error:  # the machine takes no more of it: a full disk, say
                _log.error("%s cannot be recorded: %s", self._resource.plural, error.strerror or error)
                self.error = error
                self._go_blind(self._contact_ns, f"the recorder could not write: {error}")
            except Exception as error:  # a defect of ours must not end the recording in silence
                _log.exception("recording %s failed", self._resource.plural)
                self.error = error
                self._go_blind(self._contact_ns, f"the recorder failed: {error!r}")
            if self._clock.now_ns() - started_ns < _RETRY_S * NS_PER_S:
                await asyncio.sleep(_RETRY_S)

    async def confirm(self) -> None:
        """At the end, while ``run`` still goes on: a list that shows what the watch has told, or that the watch has
        gone beyond. A watch that is quiet may just as well be frozen, and no bookmark will tell any more."""
        why = "no answer"
        try:
            async with asyncio.timeout(ENDS_WITHIN_S):
                while self._version is not None:
                    try:
                        found = await self._kube.list(self._resource)
                        await self._told_up_to(found)
                        return
                    except NotFound:
                        return  # removed by now: the watch told of what it had
                    except (ApiError, OSError) as error:
                        why = str(error)
                        await asyncio.sleep(_RETRY_S)
        except TimeoutError:
            self._unconfirmed = f"the API server did not confirm the recording's last moments: {why}"
        except Exception as error:  # a defect of ours must not end the recording in silence
            _log.exception("asking for the last of %s failed", self._resource.plural)
            self._unconfirmed = f"the recorder failed: {error!r}"

    async def _told_up_to(self, found: ObjectList) -> None:
        """Returns once it has, or is known to be blind."""
        there, until = dict(map(_version, found.items)), int(found.resource_version)
        while self._version is not None:
            if not self._doubt and (self._there == there or int(self._version) >= until):
                return
            await asyncio.sleep(_LOOKS_EVERY_S)

    def close(self) -> None:
        """Blind at the end is a gap, too: nobody will list again. So is what was in doubt, or was not confirmed."""
        why = self._doubt or self._unconfirmed
        if why and self._version is not None:
            self._go_blind(self._contact_ns, why)
        if self._blind_since_ns is not None:
            self._end_gap(self._clock.now_ns())

    async def _list(self) -> None:
        found = await self._kube.list(self._resource)
        now_ns = self._clock.now_ns()
        if self._absent_ns is not None:
            self._go_blind(self._absent_ns, "the resource was not served until now")
            self._absent_ns = None
        if self._blind_since_ns is not None:
            self._end_gap(now_ns)
        for obj in found.items:
            self._objects.write(now_ns, self._resource.kind, ObjectEventType.LISTED, _slim(obj))
        self._state.replace(self._resource, found.items)
        self._version = found.resource_version
        self._there = dict(map(_version, found.items))
        self._contact()
        self.known.set()

    async def _look_again(self) -> None:
        found = await self._kube.list(self._resource)
        if dict(map(_version, found.items)) != self._there or await self._has_missed(int(found.resource_version)):
            self._go_blind(self._contact_ns, self._doubt)
        else:
            self._version, self._doubt = found.resource_version, ""
            self._contact()

    async def _has_missed(self, until: int) -> bool:
        """Whether anything was changed up to that version that the list does not show: what came and went."""
        assert self._version is not None
        events = self._kube.watch(self._resource, resource_version=self._version)
        try:
            async with asyncio.timeout(_TELLS_WITHIN_S):
                async for event in events:
                    if int(event.object["metadata"]["resourceVersion"]) > until:
                        return False
                    if event.type is not EventType.BOOKMARK:
                        return True
        except TimeoutError:
            pass
        return False

    async def _follow(self, version: str) -> None:
        events = self._kube.watch(self._resource, resource_version=version)
        while (event := await self._next(events)) is not None:
            self._contact()
            self._version = str(event.object.get("metadata", {}).get("resourceVersion") or self._version)
            if event.type is not EventType.BOOKMARK:
                self._note(event)
                type = ObjectEventType(event.type.value)
                self._objects.write(self._contact_ns, self._resource.kind, type, _slim(event.object))
                self._state.apply(self._resource, event.type, event.object)
        raise WatchClosed("the watch ended")

    def _note(self, event: WatchEvent) -> None:
        uid, version = _version(event.object)
        if event.type is EventType.DELETED:
            self._there.pop(uid, None)
        else:
            self._there[uid] = version

    async def _next(self, events: AsyncIterator[WatchEvent]) -> WatchEvent | None:
        try:
            async with asyncio.timeout(self._silent_s):
                return await anext(events, None)
        except TimeoutError:
            raise _Silent(f"the API server said nothing for {self._silent_s:g} s, not even a bookmark") from None

    def _contact(self) -> None:
        self._contact_ns = self._clock.now_ns()
        self._failing_since_ns = None
        self.error = None

    def _failed(self, error: Exception) -> None:
        self.error = error
        if self._failing_since_ns is None:
            self._failing_since_ns = self._contact_ns
        away_ns = self._clock.now_ns() - self._failing_since_ns
        if self._version is not None and away_ns > UNREACHABLE_NS:
            self._go_blind(self._failing_since_ns, f"the API server could not be reached: {error}")

    async def _is_absent(self) -> None:
        """The server does not serve this resource: no gap, but worth a mark. It may still be installed later."""
        if self._absent_ns is None:
            self._on_absent(self._resource)
        self._contact()
        self._absent_ns = self._contact_ns
        if self._blind_since_ns is not None:
            self._end_gap(self._contact_ns)
        self._version = None
        self.known.set()
        await asyncio.sleep(_ABSENT_RETRY_S)

    def _go_blind(self, since_ns: int, reason: str) -> None:
        """From here on only a list can help. The first reason is kept: what follows is the same blindness."""
        if self._blind_since_ns is None:
            self._blind_since_ns, self._blind_reason = since_ns, reason
        self._version, self._doubt = None, ""

    def _end_gap(self, now_ns: int) -> None:
        self._objects.write(
            now_ns,
            self._resource.kind,
            ObjectEventType.GAP,
            since_ns=self._blind_since_ns,
            reason=self._blind_reason,
        )
        self._blind_since_ns = None


def _version(obj: Json) -> tuple[str, str]:
    meta = obj["metadata"]
    return str(meta.get("uid")), str(meta.get("resourceVersion"))


def _slim(obj: Json) -> Json:
    """Without secrets, and without ``managedFields``, which are half of an object's bytes. They say who wrote what, so
    they stay on what is scaled, where writers may fight."""
    obj = without_secrets(obj)
    metadata = obj.get("metadata", {})
    if "managedFields" not in metadata or "replicas" in obj.get("spec", {}):
        return obj
    return obj | {"metadata": {k: v for k, v in metadata.items() if k != "managedFields"}}
