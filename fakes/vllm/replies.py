"""The two ways a request is answered: as a stream of events, or whole at its end. Both take tokens from the engine."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Protocol

from fakes.vllm.ledger import LedgerEntry
from fakes.vllm.requests import RequestRefused
from fakes.vllm.sse import DONE_CHUNK, EventEncoder, error_event

ENGINE_DEAD = "EngineCore encountered an issue. See stack trace (above) for the root cause."
LEFT = "left"


@dataclass(frozen=True, slots=True)
class Ended:
    tokens: int
    finish: str


class Reply(Protocol):
    """A ``TokenSink`` that a dying server can end early, in either of two ways."""

    ended: asyncio.Future[Ended]

    def token(self, index: int, finish: str | None) -> None: ...

    def abort(self) -> None:
        """Ends as if the model had finished, with finish_reason ``abort``."""
        ...

    def fail(self) -> None:
        """Ends with an error."""
        ...

    def cut(self) -> None:
        """The server is gone: whoever waits for the end gets ``ConnectionResetError``."""
        ...


class StreamOut(Protocol):
    """Where the events of a stream go. Called in the engine's step: nothing here may await or raise."""

    def is_closing(self) -> bool:
        """The client has gone."""
        ...

    def token(self, index: int) -> None: ...

    def last(self, index: int, finish: str, *, with_text: bool, only: bool) -> None:
        """The last token's event and all that ends a stream. ``only``: no token went before."""
        ...

    def error(self, message: str, type: str, status: int) -> None:
        """An error after the headers, and the stream's end."""
        ...


class EventStream:
    """Writes each event straight to the connection, which costs no wake-up of the handler. What a client does not read
    piles up here, as in the original: a client that stops reading does not slow the engine."""

    def __init__(self, encoder: EventEncoder, transport: asyncio.WriteTransport) -> None:
        self._encoder = encoder
        self._transport = transport
        self.is_closing = transport.is_closing

    def token(self, index: int) -> None:
        frame = self._encoder.token(index)
        self._transport.write(frame if index > 1 else self._encoder.first(index) + frame)

    def last(self, index: int, finish: str, *, with_text: bool, only: bool) -> None:
        last = self._encoder.last(index, finish, with_text=with_text)
        self._transport.write(self._encoder.first(index) + last if only else last)

    def error(self, message: str, type: str, status: int) -> None:
        self._transport.write(error_event(message, type, status) + DONE_CHUNK)


class StreamReply:
    """Hands each token on as it comes, and knows how far its stream has come."""

    def __init__(self, out: StreamOut, entry: LedgerEntry) -> None:
        self._out = out
        self._entry = entry
        self.ended: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()

    def token(self, index: int, finish: str | None) -> None:
        if self.ended.done() or self._out.is_closing():
            return
        if finish is not None:
            self._end(index, finish, with_text=finish != "stop")
            return
        self._out.token(index)
        self._entry.sent_tokens = index
        self._entry.sent_events += 1

    def abort(self) -> None:
        sent = self._entry.sent_tokens
        if not self.ended.done():
            self._end(sent + 1 if sent else 0, "abort", with_text=sent > 0)

    def fail(self) -> None:
        if self.ended.done():
            return
        self._entry.finish = "error"
        self._out.error(ENGINE_DEAD, "InternalServerError", 500)
        self.ended.set_result(Ended(self._entry.sent_tokens, "error"))

    def cut(self) -> None:
        _cut(self.ended)

    def _end(self, index: int, finish: str, *, with_text: bool) -> None:
        self._out.last(index, finish, with_text=with_text, only=not self._entry.sent_tokens)
        self._entry.sent_tokens = index
        self._entry.sent_events += with_text
        self._entry.finish = finish
        self.ended.set_result(Ended(index, finish))


class WholeReply:
    """Counts tokens; the handler writes the body at the end."""

    def __init__(self, entry: LedgerEntry) -> None:
        self._entry = entry
        self._tokens = 0
        self.ended: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()

    def token(self, index: int, finish: str | None) -> None:
        self._tokens = index
        if finish is not None:
            self._end(finish)

    def abort(self) -> None:
        self._end("abort")

    def fail(self) -> None:
        if not self.ended.done():
            self._entry.finish = "error"
            self.ended.set_exception(RequestRefused(500, "InternalServerError", ENGINE_DEAD))

    def cut(self) -> None:
        _cut(self.ended)

    def _end(self, finish: str) -> None:
        if not self.ended.done():
            self._entry.sent_tokens = self._tokens
            self._entry.finish = finish
            self.ended.set_result(Ended(self._tokens, finish))


def _cut(ended: asyncio.Future[Ended]) -> None:
    if not ended.done():
        ended.set_exception(ConnectionResetError("the server's process has ended"))
