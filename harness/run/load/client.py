"""A streaming chat client on gevent sockets: no retries, every read stamped before anything looks at it.

A timer that fires is not believed at once: the machine, not the server, may have stood still, and then the bytes are
there. Only when a last look finds nothing is a limit taken as reached.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

import gevent  # type: ignore[import-untyped]  # ships no types
import httptools
from gevent import socket

from harness.clock import NS_PER_S, RunClock
from harness.errors import BadInput
from harness.run.load.exchange import Answer, Exchange
from harness.run.load.limits import SendLimits, next_limit
from harness.run.load.outcome import Ending

_READ_BYTES = 1 << 16
_IDLE_MAX_S = 4.0
"""Servers close idle connections (uvicorn after 5 s); one about to be closed is not worth a lost request."""
_UNREACHABLE = frozenset(
    {errno.ECONNREFUSED, errno.ECONNRESET, errno.ECONNABORTED, errno.EHOSTUNREACH, errno.ENETUNREACH}
)


@dataclass(slots=True)
class _Connection:
    sock: socket.socket
    idle_since_ns: int = 0


class _LimitReached(Exception):
    """Nothing came by the limit. Never leaves this module."""


class ChatClient:
    """``POST {url}/v1/chat/completions`` over a pool of kept-alive connections, one exchange at a time on each."""

    def __init__(self, url: str, limits: SendLimits, clock: RunClock, request_id_prefix: str) -> None:
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname:
            raise BadInput(f"the load can only be sent to an http:// address, not to {url!r}")
        self._address = (parts.hostname, parts.port or 80)
        self._limits = limits
        self._clock = clock
        self._idle: list[_Connection] = []
        self._head = (
            f"POST {parts.path.rstrip('/')}/v1/chat/completions HTTP/1.1\r\nHost: {parts.netloc}\r\n"
            f"Content-Type: application/json\r\nX-Request-Id: {request_id_prefix}-"
        )

    def send(self, exchange: Exchange, body: bytes) -> None:
        """Runs the exchange to its end. Whatever happens is in ``exchange`` afterwards; nothing is raised for it."""
        connection = self._take_idle(exchange) or self._connect(exchange)
        if connection is None:
            return
        reusable = False
        try:
            reusable = self._converse(exchange, connection.sock, body)
        except httptools.HttpParserError as error:
            exchange.finish(Ending.BAD_HTTP, self._clock.now_ns(), str(error))
        except OSError as error:
            gone = isinstance(error, (ConnectionResetError, BrokenPipeError))
            exchange.finish(Ending.RESET if gone else Ending.FAILED, self._clock.now_ns(), _text(error))
        finally:
            if reusable:
                connection.idle_since_ns = self._clock.now_ns()
                self._idle.append(connection)
            else:
                connection.sock.close()

    def close(self) -> None:
        for connection in self._idle:
            connection.sock.close()
        self._idle.clear()

    def _take_idle(self, exchange: Exchange) -> _Connection | None:
        oldest_ns = self._clock.now_ns() - round(_IDLE_MAX_S * NS_PER_S)
        while self._idle:
            connection = self._idle.pop()  # the last used first, so that the others grow old and are closed
            if connection.idle_since_ns >= oldest_ns and not _has_news(connection.sock):
                exchange.reused = True
                exchange.connected_ns = exchange.sent_ns
                return connection
            connection.sock.close()
        return None

    def _connect(self, exchange: Exchange) -> _Connection | None:
        timeout_s = self._limits.connect_timeout_s
        try:
            with gevent.Timeout(timeout_s, TimeoutError):  # covers the look-up of the name, too
                sock = socket.create_connection(self._address)
        except TimeoutError:
            exchange.finish(Ending.CONNECT_TIMEOUT, self._clock.now_ns(), f"waited {timeout_s:g} s")
            return None
        except OSError as error:
            refused = error.errno in _UNREACHABLE
            exchange.finish(Ending.REFUSED if refused else Ending.FAILED, self._clock.now_ns(), _text(error))
            return None
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        exchange.connected_ns = self._clock.now_ns()
        return _Connection(sock)

    def _converse(self, exchange: Exchange, sock: socket.socket, body: bytes) -> bool:
        """Sends and reads to the end; True when the connection may carry another request."""
        accept = "text/event-stream" if exchange.facts.stream else "application/json"
        head = f"{self._head}{exchange.request_id}\r\nAccept: {accept}\r\nContent-Length: {len(body)}\r\n\r\n".encode(
            "latin-1"
        )
        sock.settimeout(min(self._limits.first_token_timeout_s, self._limits.deadline_s))
        try:
            sock.sendall(head + body)
        except TimeoutError:
            exchange.finish(Ending.NO_TOKEN, self._clock.now_ns(), "the server did not take the request")
            return False
        answer = Answer(exchange)
        now_ns = self._clock.now_ns
        while not answer.complete:
            until_ns, ending, limit_s = next_limit(exchange, self._limits)
            try:
                data = _receive(sock, until_ns, now_ns)
            except _LimitReached:
                exchange.finish(ending, now_ns(), f"waited {limit_s:g} s")
                return False
            read_ns = now_ns()
            if not data:
                exchange.finish(answer.connection_ended(), read_ns)
                return False
            answer.feed(data, read_ns)
            if not answer.complete and (why := exchange.hangs_up(read_ns)) is not None:
                exchange.finish(Ending.HUNG_UP, read_ns, why)
                return False
        exchange.finish(Ending.COMPLETE, read_ns)
        return answer.keep_alive


def _receive(sock: socket.socket, until_ns: int, now_ns: Callable[[], int]) -> bytes:
    """The next bytes, b"" at the end of the connection; raises when a last look at the limit finds nothing."""
    remaining_s = (until_ns - now_ns()) / NS_PER_S
    if remaining_s > 0:
        sock.settimeout(remaining_s)
        try:
            return bytes(sock.recv(_READ_BYTES))
        except TimeoutError:
            pass  # the last look below decides
    sock.settimeout(0.0)
    try:
        return bytes(sock.recv(_READ_BYTES))
    except BlockingIOError:
        raise _LimitReached from None


def _has_news(sock: socket.socket) -> bool:
    """Whether an idle connection is readable: the server has closed it, or speaks out of turn."""
    sock.settimeout(0.0)
    try:
        sock.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _text(error: OSError) -> str:
    return error.strerror or str(error) or type(error).__name__
