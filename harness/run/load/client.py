"""A streaming client of OpenAI-compatible servers: no retries, every read stamped before anything looks at it.

A limit that is reached is not believed at once: the machine, not the server, may have stood still, and then the bytes
are there. Only when a last look finds nothing is it taken as reached (``wire.py``).
"""

from __future__ import annotations

import errno
import ssl
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

import gevent  # type: ignore[import-untyped]  # ships no types
import httptools
from gevent import socket

from harness.clock import NS_PER_S, RunClock
from harness.errors import BadInput
from harness.run.load.api import Api
from harness.run.load.channel import Address, Channel
from harness.run.load.exchange import Answer, Exchange
from harness.run.load.limits import SendLimits, next_limit
from harness.run.load.outcome import Ending
from harness.run.load.wire import Wire

_IDLE_MAX_S = 4.0
"""Servers close idle connections (uvicorn after 5 s); one about to be closed is not worth a lost request."""
_UNREACHABLE = frozenset(
    {errno.ECONNREFUSED, errno.ECONNRESET, errno.ECONNABORTED, errno.EHOSTUNREACH, errno.ENETUNREACH}
)

OnEnd = Callable[[Exchange], None]


class ChatClient:
    """``POST`` to one address over a pool of kept-alive connections, one exchange at a time on each."""

    def __init__(self, api: Api, limits: SendLimits, clock: RunClock, wire: Wire, request_id_prefix: str) -> None:
        parts = urlsplit(api.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise BadInput(f"the load can only be sent to an http:// or https:// address, not to {api.url!r}")
        self.limits = limits
        self.clock = clock
        self.wire = wire
        self.host = parts.hostname
        self.tls = (api.tls_context(), self.host) if parts.scheme == "https" else None
        self._port = parts.port or (443 if self.tls else 80)
        self._literal = _literal_addresses(self.host, self._port)
        self._idle: list[Conversation] = []
        extra = "".join(f"{name}: {value}\r\n" for name, value in api.all_headers().items())
        self._head = (
            f"POST {parts.path.rstrip('/')}{api.path} HTTP/1.1\r\nHost: {parts.netloc.rpartition('@')[2]}\r\n"
            f"Content-Type: application/json\r\n{extra}X-Request-Id: {request_id_prefix}-"
        )

    def start(self, exchange: Exchange, body: bytes, on_end: OnEnd, *, fresh: bool = False) -> None:
        """Begins the exchange and returns; ``on_end`` is called once it has an ending, whatever that is.

        ``fresh`` asks for a connection that has carried nothing yet.
        """
        request = self._request(exchange, body)
        if not fresh and (conversation := self._take_idle()) is not None:
            conversation.again(exchange, request, on_end)
        elif self._literal:
            Conversation(self, exchange, request, on_end).open(self._literal)
        else:
            gevent.spawn(self._look_up_and_open, Conversation(self, exchange, request, on_end))

    def give_back(self, conversation: Conversation) -> None:
        """Its connection may carry another request."""
        self._idle.append(conversation)

    def drop(self, conversation: Conversation) -> None:
        """The server has closed an idle connection, or broke it by speaking out of turn."""
        if conversation in self._idle:
            self._idle.remove(conversation)

    def close(self) -> None:
        for conversation in self._idle:
            conversation.close()
        self._idle.clear()

    def _request(self, exchange: Exchange, body: bytes) -> bytes:
        accept = "text/event-stream" if exchange.facts.stream else "application/json"
        head = f"{self._head}{exchange.request_id}\r\nAccept: {accept}\r\nContent-Length: {len(body)}\r\n\r\n"
        return head.encode("latin-1") + body

    def _take_idle(self) -> Conversation | None:
        oldest_ns = self.clock.now_ns() - round(_IDLE_MAX_S * NS_PER_S)
        while self._idle:
            conversation = self._idle.pop()  # the last used first, so that the others grow old and are closed
            if conversation.idle_since_ns >= oldest_ns and conversation.stands():
                return conversation
            conversation.close()
        return None

    def _look_up_and_open(self, conversation: Conversation) -> None:
        """Names are asked for at every new connection, as most clients do: an address may move with a failover."""
        timeout_s = self.limits.connect_timeout_s
        try:
            with gevent.Timeout(timeout_s, TimeoutError):
                found = socket.getaddrinfo(self.host, self._port, type=socket.SOCK_STREAM)
        except TimeoutError:
            conversation.end(
                Ending.CONNECT_TIMEOUT, self.clock.now_ns(), f"no address of {self.host} in {timeout_s:g} s"
            )
        except OSError as error:
            conversation.end(Ending.FAILED, self.clock.now_ns(), f"{self.host}: {_text(error)}")
        else:
            conversation.open([(family, where) for family, _, _, _, where in found])


class Conversation:
    """One connection's exchanges, one after another: the owner of its channel."""

    __slots__ = (
        "_answer", "_armed_ns", "_channel", "_client", "_exchange", "_may_hang_up", "_on_end", "_open", "_request",
        "_stall_armed", "idle_since_ns",
    )  # fmt: skip

    def __init__(self, client: ChatClient, exchange: Exchange, request: bytes, on_end: OnEnd) -> None:
        self._client = client
        self._channel = Channel(client.wire, self, client.tls)
        self._open = False
        self._armed_ns: int | None = None
        self.idle_since_ns = 0
        self._exchange: Exchange | None = exchange
        self._on_end: OnEnd | None = on_end
        self._may_hang_up = exchange.may_hang_up
        self._answer = Answer(exchange)
        self._request = request
        self._stall_armed = False

    def open(self, addresses: Sequence[Address]) -> None:
        assert self._exchange is not None
        self._arm(self._exchange.sent_ns + round(self._client.limits.connect_timeout_s * NS_PER_S))
        self._channel.open(addresses)

    def again(self, exchange: Exchange, request: bytes, on_end: OnEnd) -> None:
        """Another exchange on the open connection."""
        self._exchange, self._on_end, self._answer, self._request = exchange, on_end, Answer(exchange), request
        self._may_hang_up = exchange.may_hang_up
        self._stall_armed = False
        exchange.reused = True
        self._speak(exchange.sent_ns)

    def stands(self) -> bool:
        return self._channel.silent()

    def close(self) -> None:
        self._channel.close()

    def end(self, ending: Ending, now_ns: int, detail: str = "", *, keep: bool = False) -> None:
        """The exchange is over; so is the connection, unless it is kept for another."""
        exchange, on_end = self._exchange, self._on_end
        if exchange is None or on_end is None:
            return
        self._exchange = self._on_end = None
        exchange.finish(ending, now_ns, detail)
        if keep:
            self.idle_since_ns = now_ns
            self._client.give_back(self)
        else:
            self.close()
        on_end(exchange)

    # -- what the channel says

    def opened(self) -> None:
        self._open = True
        self._armed_ns = None  # the limit on connecting has no more meaning
        self._speak(self._client.clock.now_ns())

    def refused(self, error: OSError) -> None:
        ending = Ending.REFUSED if error.errno in _UNREACHABLE else Ending.FAILED
        self.end(ending, self._client.clock.now_ns(), _text(error))

    def lost(self, error: OSError) -> None:
        if self._exchange is None:
            self._client.drop(self)
            self.close()
            return
        gone = isinstance(error, (ConnectionResetError, BrokenPipeError, ssl.SSLEOFError))
        self.end(Ending.RESET if gone else Ending.FAILED, self._client.clock.now_ns(), _text(error))

    def received(self, data: bytes, read_ns: int) -> None:
        exchange, answer = self._exchange, self._answer
        if exchange is None:
            self._client.drop(self)
            self.close()
            return
        if not data:
            self.end(answer.connection_ended(), read_ns)
            return
        try:
            if answer.feed(data, read_ns) and not self._may_hang_up:
                return  # more tokens: nothing has changed
        except httptools.HttpParserError as error:
            self.end(Ending.BAD_HTTP, read_ns, str(error))
            return
        if answer.complete:
            self.end(Ending.COMPLETE, read_ns, keep=answer.keep_alive and not self._channel.unsent)
        elif self._may_hang_up and (why := exchange.hangs_up(read_ns)) is not None:
            self.end(Ending.HUNG_UP, read_ns, why)
        elif not self._stall_armed and exchange.first_token_ns is not None:
            self._stall_armed = True  # from here on the limits are nearer than the one for the first token
            self._arm(next_limit(exchange, self._client.limits)[0])

    def limit_reached(self, now_ns: int) -> None:
        if self._armed_ns is None or now_ns < self._armed_ns:
            return  # asked for by an exchange before this one, or before a nearer limit was
        self._armed_ns = None
        if (exchange := self._exchange) is None:
            return
        if not self._open:
            waited = f"waited {self._client.limits.connect_timeout_s:g} s"
            self.end(Ending.CONNECT_TIMEOUT, now_ns, waited)
            return
        until_ns, ending, limit_s = next_limit(exchange, self._client.limits)
        if until_ns > now_ns:
            self._arm(until_ns)
        elif self._channel.unsent:
            self.end(ending, now_ns, "the server did not take the request")
        else:
            self.end(ending, now_ns, f"waited {limit_s:g} s")

    # -- within

    def _speak(self, now_ns: int) -> None:
        assert self._exchange is not None
        self._exchange.connected_ns = now_ns
        self._arm(next_limit(self._exchange, self._client.limits)[0])
        request, self._request = self._request, b""
        self._channel.send(request)

    def _arm(self, t_ns: int) -> None:
        """Limits only ever come nearer within an exchange; those that move on are looked at when they strike."""
        if self._armed_ns is None or t_ns < self._armed_ns:
            self._armed_ns = t_ns
            self._client.wire.wake_at(t_ns, self)


def _literal_addresses(host: str, port: int) -> list[Address]:
    """The address that ``host`` spells out; none where it is a name."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except OSError:
            continue
        return [(family, (host, port))]
    return []


def _text(error: OSError) -> str:
    return error.strerror or str(error) or type(error).__name__
