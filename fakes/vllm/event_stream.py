"""Events written straight to a connection, which costs no wake-up of the handler.

What a client does not read piles up here, as in the original: a client that stops reading does not slow the engine.
"""

from __future__ import annotations

import asyncio

from fakes.vllm.sse import DONE_CHUNK, EventEncoder, chunk, error_event

KEEP_ALIVE = chunk(b": keep-alive\n\n")


class EventStream:
    def __init__(self, encoder: EventEncoder, transport: asyncio.WriteTransport) -> None:
        self._encoder = encoder
        self._transport = transport
        self._begun = False
        self.is_closing = transport.is_closing
        self._write = transport.write
        self._event = encoder.token

    def token(self, choice: int, index: int) -> None:
        if self._begun:
            self._write(self._event(choice, index))
        else:
            self._begun = True
            self._write(self._encoder.first() + self._event(choice, index))

    def last(self, choice: int, index: int, finish: str, *, with_text: bool, total: int | None) -> None:
        event = self._encoder.last(choice, index, finish, with_text=with_text)
        if not self._begun:
            self._begun = True
            event = self._encoder.first() + event
        self._write(event if total is None else event + self._encoder.end(total))

    def error(self, message: str, type: str, status: int) -> None:
        self._write(error_event(message, type, status) + DONE_CHUNK)


class KeptAlive:
    """A comment whenever nothing came for ``interval_s`` clock seconds, also while the request waits in the queue."""

    def __init__(self, stream: EventStream, transport: asyncio.WriteTransport, interval_s: float) -> None:
        self._stream = stream
        self._transport = transport
        self._interval_s = interval_s
        self._loop = asyncio.get_running_loop()
        self._since_s = self._loop.time()
        self._timer = self._loop.call_later(interval_s, self._look)
        self.is_closing = transport.is_closing

    def token(self, choice: int, index: int) -> None:
        self._since_s = self._loop.time()
        self._stream.token(choice, index)

    def last(self, choice: int, index: int, finish: str, *, with_text: bool, total: int | None) -> None:
        if total is not None:
            self.stop()
        self._stream.last(choice, index, finish, with_text=with_text, total=total)

    def error(self, message: str, type: str, status: int) -> None:
        self.stop()
        self._stream.error(message, type, status)

    def stop(self) -> None:
        self._timer.cancel()

    def _look(self) -> None:
        if self._transport.is_closing():
            return
        now = self._loop.time()
        if now >= self._since_s + self._interval_s - 1e-6:
            self._transport.write(KEEP_ALIVE)
            self._since_s = now
        self._timer = self._loop.call_at(self._since_s + self._interval_s, self._look)
