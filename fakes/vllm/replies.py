"""The two ways a request is answered: as a stream of events, or whole at its end. Both take tokens from the engine.

A request has one sequence in the engine for each of its choices, and ends with the last of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from fakes.vllm.engine import TokenSink
from fakes.vllm.ledger import LedgerEntry
from fakes.vllm.requests import RequestRefused

ENGINE_DEAD = "EngineCore encountered an issue. See stack trace (above) for the root cause."
LEFT = "left"


@dataclass(frozen=True, slots=True)
class Ended:
    """Tokens and finish_reason of each choice."""

    choices: Sequence[tuple[int, str]]


class Reply(Protocol):
    """What a dying server can end early, in either of two ways."""

    ended: asyncio.Future[Ended]

    @property
    def sinks(self) -> Sequence[TokenSink]:
        """One for each choice."""
        ...

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

    def token(self, choice: int, index: int) -> None: ...

    def last(self, choice: int, index: int, finish: str, *, with_text: bool, total: int | None) -> None:
        """The last token's event of a choice. With the last choice also all that ends a stream; then ``total`` has the
        tokens of all choices."""
        ...

    def error(self, message: str, type: str, status: int) -> None:
        """An error after the headers, and the stream's end."""
        ...


class _StreamChoice:
    __slots__ = ("choice", "finish", "reply", "sent")

    def __init__(self, reply: StreamReply, choice: int) -> None:
        self.reply = reply
        self.choice = choice
        self.sent = 0
        self.finish = ""

    def token(self, index: int, finish: str | None) -> None:
        reply = self.reply
        if reply.over or reply.out.is_closing():
            return
        if finish is not None:
            reply.end(self, index, finish, with_text=finish != "stop")
            return
        reply.out.token(self.choice, index)
        self.sent = index
        reply.entry.sent_tokens += 1
        reply.entry.sent_events += 1


class StreamReply:
    """Hands each token on as it comes, and knows how far its stream has come."""

    def __init__(self, out: StreamOut, entry: LedgerEntry, choices: int = 1) -> None:
        self.out = out
        self.entry = entry
        self.over = False
        self.sinks = [_StreamChoice(self, i) for i in range(choices)]
        self._open = choices
        self.ended: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()

    def abort(self) -> None:
        for sink in self.sinks:
            if not sink.finish and not self.over:
                self.end(sink, sink.sent + 1 if sink.sent else 0, "abort", with_text=sink.sent > 0)

    def fail(self) -> None:
        if self.over:
            return
        self.over = True
        self.entry.finish = "error"
        self.out.error(ENGINE_DEAD, "InternalServerError", 500)
        self.ended.set_result(Ended([(sink.sent, "error") for sink in self.sinks]))

    def cut(self) -> None:
        self.over = True
        _cut(self.ended)

    def end(self, sink: _StreamChoice, index: int, finish: str, *, with_text: bool) -> None:
        self._open -= 1
        self.entry.sent_tokens += index - sink.sent
        self.entry.sent_events += with_text
        sink.sent, sink.finish = index, finish
        total = None if self._open else sum(s.sent for s in self.sinks)
        self.out.last(sink.choice, index, finish, with_text=with_text, total=total)
        if total is not None:
            self.over = True
            self.entry.finish = finish
            self.ended.set_result(Ended([(s.sent, s.finish) for s in self.sinks]))


class _WholeChoice:
    __slots__ = ("finish", "reply", "tokens")

    def __init__(self, reply: WholeReply) -> None:
        self.reply = reply
        self.tokens = 0
        self.finish = ""

    def token(self, index: int, finish: str | None) -> None:
        self.tokens = index
        if finish is not None:
            self.finish = finish
            self.reply.one_ended()


class WholeReply:
    """Counts tokens; the handler writes the body at the end."""

    def __init__(self, entry: LedgerEntry, choices: int = 1) -> None:
        self._entry = entry
        self.sinks = [_WholeChoice(self) for _ in range(choices)]
        self.ended: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()

    def abort(self) -> None:
        for sink in self.sinks:
            sink.finish = sink.finish or "abort"
        self.one_ended()

    def fail(self) -> None:
        if not self.ended.done():
            self._entry.finish = "error"
            self.ended.set_exception(RequestRefused(500, "InternalServerError", ENGINE_DEAD))

    def cut(self) -> None:
        _cut(self.ended)

    def one_ended(self) -> None:
        if not self.ended.done() and all(sink.finish for sink in self.sinks):
            self._entry.sent_tokens = sum(sink.tokens for sink in self.sinks)
            self._entry.finish = self.sinks[-1].finish
            self.ended.set_result(Ended([(sink.tokens, sink.finish) for sink in self.sinks]))


def _cut(ended: asyncio.Future[Ended]) -> None:
    if not ended.done():
        ended.set_exception(ConnectionResetError("the server's process has ended"))
