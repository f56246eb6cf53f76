"""One TCP connection as a channel of bytes: opening over several addresses, TLS, sending, reading. Knows no HTTP."""

from __future__ import annotations

import errno
import os
import ssl
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from gevent import monkey, socket  # type: ignore[import-untyped]  # ships no types

from harness.run.load.tls import Tls
from harness.run.load.wire import Wire

_new_socket: Callable[..., Any] = monkey.get_original("socket", "socket")
"""Not gevent's: the wire waits for it."""

Address = tuple[int, tuple[Any, ...]]
"""A family and what ``connect`` takes."""


class Owner(Protocol):
    """Who uses the channel. ``received`` gets ``b""`` at the end of the connection."""

    def opened(self) -> None: ...

    def refused(self, error: OSError) -> None:
        """No address let us in, or the handshake failed. The channel is closed."""

    def received(self, data: bytes, read_ns: int) -> None: ...

    def lost(self, error: OSError) -> None:
        """An open connection broke."""


class Channel:
    """A peer of the wire. Closed by its owner, but for one that never opened."""

    __slots__ = (
        "_addresses",
        "_fd",
        "_open",
        "_owner",
        "_sock",
        "_tls",
        "_tls_context",
        "_unsent",
        "_wants_room",
        "_wire",
        "take",
    )

    def __init__(self, wire: Wire, owner: Owner, tls: tuple[ssl.SSLContext, str] | None = None) -> None:
        """``tls`` is a context and the name that the server's certificate must carry."""
        self._wire = wire
        self._owner = owner
        self._tls_context = tls
        self._tls: Tls | None = None
        self._addresses: list[Address] = []
        self._sock: Any = None
        self._fd = -1
        self._open = False
        self._unsent: bytes | memoryview = b""
        self._wants_room = False
        # Without TLS the owner hears of bytes at once: one call less for each token.
        self.take: Callable[[bytes, int], None] = owner.received if tls is None else self._take_sealed

    @property
    def unsent(self) -> bool:
        """Whether the peer has yet to take something that was sent."""
        return bool(self._unsent)

    def open(self, addresses: Sequence[Address]) -> None:
        """The first address that lets us in is the one."""
        self._addresses = list(addresses)
        self._try_next_address(OSError(errno.EADDRNOTAVAIL, "no address to connect to"))

    def send(self, data: bytes) -> None:
        """At once as far as the socket takes it, the rest when it does."""
        if self._tls is not None:
            data = self._tls.sealed(data)
        self._push(data)

    def silent(self) -> bool:
        """Whether nothing has come and the connection stands, as far as can be seen from here."""
        try:
            self._sock.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def close(self) -> None:
        if self._sock is not None:
            self._wire.forget(self._fd)
            self._sock.close()
            self._sock = None
            self._open = False

    # -- what the wire says

    def _take_sealed(self, data: bytes, read_ns: int) -> None:
        assert self._tls is not None
        try:
            opened = self._through_tls(self._tls, data)
        except ssl.SSLError as error:
            self._fails(error)
            return
        if opened or (self._open and not data):
            self._owner.received(opened, read_ns)

    def broken(self, error: OSError) -> None:
        self._fails(error)

    def writable(self) -> None:
        if self._open or self._tls is not None:
            self._push(b"")
        elif number := self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self._try_next_address(_os_error(number))
        else:
            self._connected()

    # -- opening

    def _try_next_address(self, error: OSError) -> None:
        self.close()
        while self._addresses:
            family, where = self._addresses.pop(0)
            try:
                self._sock = _new_socket(family, socket.SOCK_STREAM)
                self._sock.setblocking(False)
                self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._fd = self._sock.fileno()
                number = self._sock.connect_ex(where)
            except OSError as failed:
                number = failed.errno or errno.EIO
            if number == 0:
                self._connected()
                return
            if number == errno.EINPROGRESS:
                self._watch(room=True)
                return
            error = _os_error(number)
            self.close()
        self._owner.refused(error)

    def _connected(self) -> None:
        self._watch(room=False)
        if self._tls_context is None:
            self._open = True
            self._owner.opened()
            return
        self._tls = Tls(*self._tls_context)
        self._push(self._tls.handshake())

    def _through_tls(self, tls: Tls, data: bytes) -> bytes:
        tls.feed(data)
        if not tls.ready:
            self._push(tls.handshake())
            if not tls.ready:
                return b""
            self._open = True
            self._owner.opened()
        return tls.opened()

    def _fails(self, error: OSError) -> None:
        if self._open:
            self._owner.lost(error)
        elif self._tls is not None:
            self.close()
            self._owner.refused(error)
        else:
            self._try_next_address(error)

    # -- sending

    def _push(self, data: bytes) -> None:
        unsent = memoryview(bytes(self._unsent) + data) if self._unsent else memoryview(data)
        if unsent:
            try:
                unsent = unsent[self._sock.send(unsent) :]
            except BlockingIOError:
                pass
            except OSError:
                unsent = memoryview(b"")  # the peer is gone; what it said before that is still to be read
        self._unsent = unsent
        if bool(unsent) != self._wants_room:
            self._watch(room=bool(unsent))

    def _watch(self, *, room: bool) -> None:
        self._wants_room = room
        self._wire.watch(self._fd, self, write=room)


def _os_error(number: int) -> OSError:
    return OSError(number, os.strerror(number))
