"""Watches over HTTP: one JSON line per event, bookmarks, an ERROR line for 410, a clean end."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable, Iterator

from aiohttp import web

from fakes.kube.codec import dump
from fakes.kube.kinds import Kind
from fakes.kube.requests import integer, is_true
from fakes.kube.selectors import Predicate
from fakes.kube.status import bad_option, bad_request, forbidden_field, unsupported
from fakes.kube.store import Store, Stored, Watch
from harness.kube.port import ApiError, EventType, Json

_LONGEST_S = 3600.0
_LOOK_S = 2.0
"""How often an idle watch looks whether its client is still there."""

Render = Callable[[Stored], bytes]
BOOKMARK_S: web.AppKey[float] = web.AppKey("seconds between bookmarks", float)
OPEN: web.AppKey[weakref.WeakSet[Watch]] = web.AppKey("open watches")


class WatchStream:
    """One watch request from start to end. A client that reads slowly holds up nothing but itself."""

    def __init__(
        self,
        request: web.Request,
        store: Store,
        kind: Kind,
        namespace: str | None,
        match: Predicate | None,
        render: Render,
    ) -> None:
        self._request = request
        self._store = store
        self._kind = kind
        self._namespace = namespace
        self._match = match
        self._render = render
        self._bookmarks = is_true(request.query.get("allowWatchBookmarks"))
        self._loop = asyncio.get_running_loop()
        limit_s = integer(request, "timeoutSeconds")
        self._end_s = self._loop.time() + (min(limit_s, _LONGEST_S) if limit_s and limit_s > 0 else _LONGEST_S)
        self._bookmark_s = self._loop.time() + request.app[BOOKMARK_S]

    async def run(self) -> web.StreamResponse:
        # What is wrong with the request itself is an ordinary error answer, so it comes before the first byte.
        initial, since = self._start()
        response = web.StreamResponse(
            headers={"Content-Type": "application/json", "Cache-Control": "no-cache, private"}
        )
        response.enable_chunked_encoding()
        try:
            watch = self._store.watch(self._kind.resource, since, self._namespace, self._match)
        except ApiError as e:
            if e.status != 410:
                raise
            await response.prepare(self._request)
            await response.write(_error(e))
            return response
        self._request.app[OPEN].add(watch)
        await response.prepare(self._request)
        try:
            for lines in _batches(initial):
                await response.write(lines)
            await self._follow(response, watch)
        except ConnectionError:
            return response  # WatchClosed: the server is shutting down; any other: the client has gone
        except ApiError as e:
            await response.write(_error(e))
        finally:
            self._request.app[OPEN].discard(watch)
        return response

    def _start(self) -> tuple[Iterator[bytes], int]:
        """Synthetic ADDED events where the client wants the present state first, and where the watch goes on from."""
        version = self._request.query.get("resourceVersion", "")
        wants_initial = self._request.query.get("sendInitialEvents")
        if version and not (version.isascii() and version.isdigit()):
            text = (
                f'resourceVersion: Invalid value: "{version}": strconv.ParseUint: parsing "{version}": invalid syntax'
            )
            raise bad_request(text)
        now = self._store.revision
        self._check_options()
        initial = version in ("", "0") if wants_initial is None else is_true(wants_initial)
        if not initial:
            return iter(()), int(version or now)
        found = [
            stored
            for stored in self._store.items(self._kind.resource, self._namespace)
            if self._match is None or self._match(stored.object)
        ]
        return self._initial(found, now, is_true(wants_initial) and self._bookmarks), now

    def _initial(self, found: list[Stored], version: int, marked: bool) -> Iterator[bytes]:
        for stored in found:
            yield _line(EventType.ADDED, self._render(stored))
        if marked:
            yield self._bookmark(version, {"k8s.io/initial-events-end": "true"})

    def _check_options(self) -> None:
        query = self._request.query
        rule, initial = query.get("resourceVersionMatch", ""), query.get("sendInitialEvents")
        causes = []
        if query.get("continue"):
            text = "resourceVersionMatch is forbidden when continue is provided"
            causes.append(forbidden_field("resourceVersionMatch", text))
        elif initial is not None and rule != "NotOlderThan":
            text = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            causes.append(forbidden_field("resourceVersionMatch", text))
            if rule:
                causes.append(unsupported("resourceVersionMatch", rule, ["NotOlderThan"]))
        elif rule and initial is None:
            text = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            causes.append(forbidden_field("resourceVersionMatch", text))
        if causes:
            raise bad_option("ListOptions", *causes)

    async def _follow(self, response: web.StreamResponse, watch: Watch) -> None:
        while True:
            lines: list[bytes] = []
            while len(lines) < 500 and (found := watch.poll()) is not None:
                lines.append(_line(found[0], self._render(found[1])))
            if lines:
                await response.write(b"".join(lines))
                continue
            now_s = self._loop.time()
            transport = self._request.transport
            if transport is None or transport.is_closing():
                return
            if now_s >= self._end_s:
                if self._bookmarks:  # a last word, so that the client may resume where nothing was missed
                    await response.write(self._bookmark(self._store.revision, {}))
                return
            if self._bookmarks and now_s >= self._bookmark_s:
                # Nothing of this resource has changed up to the store's revision: the client may resume from there.
                await response.write(self._bookmark(self._store.revision, {}))
                self._bookmark_s = now_s + self._request.app[BOOKMARK_S]
            next_s = min(self._end_s, self._bookmark_s) if self._bookmarks else self._end_s
            await watch.wait(min(_LOOK_S, next_s - now_s))

    def _bookmark(self, version: int, annotations: dict[str, str]) -> bytes:
        resource = self._kind.resource
        meta: Json = {"resourceVersion": str(version)}
        if annotations:
            meta["annotations"] = annotations
        obj = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": meta}
        return _line(EventType.BOOKMARK, dump(obj))


def _line(type: EventType, data: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (type.value.encode(), data)


def _error(e: ApiError) -> bytes:
    return b'{"type":"ERROR","object":%s}\n' % dump(dict(e.body))


def _batches(lines: Iterator[bytes]) -> Iterator[bytes]:
    batch: list[bytes] = []
    for line in lines:
        batch.append(line)
        if len(batch) == 500:
            yield b"".join(batch)
            batch = []
    if batch:
        yield b"".join(batch)


async def close_watches(app: web.Application) -> None:
    found = app[OPEN]
    for watch in list(found):
        watch.close()
