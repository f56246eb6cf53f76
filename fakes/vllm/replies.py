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


class StreamReply:
    """Writes each event straight to the connection, which costs no wake-up of the handler. What a client does not read
    piles up here, as in the original: a client that stops reading does not slow the engine."""

    def __init__(self, encoder: EventEncoder, entry: LedgerEntry, transport: asyncio.WriteTransport) -> None:
        self._encoder = encoder
        self._entry = entry
        self._transport = transport
        self.ended: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()

    def token(self, index: int, finish: str | None) -> None:
        if self.ended.done() or self._transport.is_closing():
            return
        if finish is not None:
            self._end(index, finish, with_text=finish != "stop")
            return
        frame = self._encoder.token(index)
        self._transport.write(frame if index > 1 else self._encoder.first(index) + frame)
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
        self._transport.write(error_event(ENGINE_DEAD, "InternalServerError", 500) + DONE_CHUNK)
        self.ended.set_result(Ended(self._entry.sent_tokens, "error"))

    def _end(self, index: int, finish: str, *, with_text: bool) -> None:
        last = self._encoder.last(index, finish, with_text=with_text)
        self._transport.write(last if self._entry.sent_tokens else self._encoder.first(index) + last)
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

    def _end(self, finish: str) -> None:
        if not self.ended.done():
            self._entry.sent_tokens = self._tokens
            self._entry.finish = finish
            self.ended.set_result(Ended(self._tokens, finish))
