"""TLS over bytes: what came from the socket goes in, what must go to it comes out. No socket in here."""

from __future__ import annotations

import ssl
from pathlib import Path

from harness.errors import BadInput, Where

_READ_BYTES = 1 << 16


def client_context(ca_file: Path | None) -> ssl.SSLContext:
    """Trusts the system's authorities, or only those of ``ca_file`` (PEM). Raises BadInput where that is none."""
    try:
        context = ssl.create_default_context(cafile=str(ca_file) if ca_file else None)
    except (OSError, ssl.SSLError) as error:
        raise BadInput(
            f"no certificate authority can be read from it: {error}",
            where=Where(str(ca_file), key="ca_file"),
            hint="name a file with one or more certificates in PEM form",
        ) from error
    context.set_alpn_protocols(["http/1.1"])
    return context


class Tls:
    """The client's side of one connection. Raises ``ssl.SSLError`` (an ``OSError``) as the ssl module does."""

    __slots__ = ("_in", "_object", "_out", "ready")

    def __init__(self, context: ssl.SSLContext, server_name: str) -> None:
        self._in = ssl.MemoryBIO()
        self._out = ssl.MemoryBIO()
        self._object = context.wrap_bio(self._in, self._out, server_hostname=server_name)
        self.ready = False
        """Whether the handshake is over."""

    def handshake(self) -> bytes:
        """Goes as far as what came allows; the bytes to send, perhaps none."""
        try:
            self._object.do_handshake()
            self.ready = True
        except ssl.SSLWantReadError:
            pass
        return self._out.read()

    def feed(self, data: bytes) -> None:
        """What came from the socket; empty for its end."""
        if data:
            self._in.write(data)
        else:
            self._in.write_eof()

    def opened(self) -> bytes:
        """The plain bytes that can be had now; ``b""`` where more must come first."""
        parts = []
        try:
            while part := self._object.read(_READ_BYTES):
                parts.append(part)
        except (ssl.SSLWantReadError, ssl.SSLZeroReturnError):
            pass
        except ssl.SSLEOFError:
            if not parts:
                raise
        return b"".join(parts)

    def sealed(self, data: bytes) -> bytes:
        self._object.write(data)
        return self._out.read()
