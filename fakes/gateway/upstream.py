"""Connections to replicas: raw HTTP/1.1, one request at a time, body bytes handed on in the event that brought them.

No task is woken per chunk: the parser finds the body in what was read, and it is written to the client's connection in
the same callback. There is no back-pressure: what a client does not read waits in memory, and an answer is small.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import httptools

IDLE_MAX_S = 4.0
"""vLLM closes a connection after 5 s without a request; one that idle is not trusted with another."""


class UpstreamClosed(Exception):
    """The replica's connection broke before the answer was whole."""


@dataclass(slots=True)
class Head:
    status: int = 0
    headers: list[tuple[str, str]] = field(default_factory=list)
    length: int | None = None
    chunked: bool = False


class Upstream(asyncio.Protocol):
    """One connection. ``send`` begins an exchange; its head, then its end, are futures."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._busy = False
        self._begin()

    def _begin(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._head = Head()
        self._parts: list[bytes] = []
        self._write: Callable[[bytes], None] | None = None
        self._complete = False
        self._keep = False
        self._body_follows = True
        self.head: asyncio.Future[Head] = self._loop.create_future()
        self.done: asyncio.Future[None] = self._loop.create_future()

    @property
    def usable(self) -> bool:
        """Whether another request may be sent on it."""
        return self._transport is not None and not self._transport.is_closing() and not self._busy

    def send(self, request: bytes, *, body_follows: bool = True) -> None:
        """``body_follows`` is False for HEAD, whose answer ends with its head."""
        if self._transport is None:
            raise UpstreamClosed("the connection was closed before the request was sent")
        self._begin()
        self._busy = True
        self._body_follows = body_follows
        self._transport.write(request)

    def relay(self, write: Callable[[bytes], None]) -> None:
        """From now on body bytes go to ``write`` as they come; those that came already go first."""
        self._write = write
        self._flush()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # asyncio's side.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if not self._busy:
            self.abort()  # nothing was asked
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._break(f"not HTTP: {error}")
            self.abort()
            return
        self._flush()
        if self._complete:
            self._finish()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if not self._busy:
            return
        delimited_by_close = self._head.length is None and not self._head.chunked
        if exc is None and self.head.done() and delimited_by_close:
            self._finish()
        else:
            self._break(str(exc or "closed by the replica"))

    def _flush(self) -> None:
        if self._write is not None and self._parts:
            parts = self._parts
            self._parts = []
            self._write(parts[0] if len(parts) == 1 else b"".join(parts))

    def _finish(self) -> None:
        self._busy = False
        if not self.done.done():
            self.done.set_result(None)

    def _break(self, why: str) -> None:
        self._busy = False
        for future in (self.head, self.done):
            if not future.done():
                future.set_exception(UpstreamClosed(why))
                future.exception()  # whoever no longer waits for it does not care

    # httptools' side.

    def on_header(self, name: bytes, value: bytes) -> None:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        if key == "content-length":
            self._head.length = int(text)
        elif key == "transfer-encoding":
            self._head.chunked = "chunked" in text.lower()
        self._head.headers.append((key, text))

    def on_headers_complete(self) -> None:
        self._head.status = self._parser.get_status_code()
        if self._head.status >= 200 and not self.head.done():
            self.head.set_result(self._head)
            self._complete = not self._body_follows

    def on_body(self, body: bytes) -> None:
        self._parts.append(body)

    def on_message_complete(self) -> None:
        if self._head.status < 200:  # 100 Continue: the answer is still to come
            self._head = Head()
            return
        self._complete = True
        self._keep = self._parser.should_keep_alive()

    @property
    def reusable(self) -> bool:
        return self._complete and self.usable and self._keep


class UpstreamPool:
    """Idle connections by address. A new one is opened when none young enough is left."""

    def __init__(self) -> None:
        self._idle: dict[tuple[str, int], list[tuple[float, Upstream]]] = {}
        self._loop = asyncio.get_running_loop()

    async def get(self, address: tuple[str, int]) -> Upstream:
        """Raises ``ConnectionRefusedError`` (or another OSError) when the replica does not listen."""
        idle = self._idle.get(address, [])
        while idle:
            since_s, upstream = idle.pop()
            if upstream.usable and self._loop.time() - since_s < IDLE_MAX_S:
                return upstream
            upstream.abort()
        _, upstream = await self._loop.create_connection(Upstream, *address)
        return upstream

    def put(self, address: tuple[str, int], upstream: Upstream) -> None:
        if upstream.reusable:
            self._idle.setdefault(address, []).append((self._loop.time(), upstream))
        else:
            upstream.abort()

    def forget(self, keep: set[tuple[str, int]]) -> None:
        """Closes what is idle at addresses that no replica has any more."""
        for address in [a for a in self._idle if a not in keep]:
            for _, upstream in self._idle.pop(address):
                upstream.abort()

    def close(self) -> None:
        self.forget(set())
