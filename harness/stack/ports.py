"""Free ports on 127.0.0.1 that stay free until the program they are for takes them.

A port that is looked up, released and taken later can be lost to another process in between. These are held by bound
sockets that do not listen; a program that sets SO_REUSEPORT (Kubernetes' and etcd's do, when asked) or SO_REUSEADDR
(every Go program does) can listen beside one. The kernel gives a port that is held like this to no other lookup.
"""

from __future__ import annotations

import socket
from types import TracebackType
from typing import Self

HOST = "127.0.0.1"


class HeldPorts:
    """Held from ``take`` until ``close``, or the end of the ``with`` block."""

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []

    def take(self) -> int:
        held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._sockets.append(held)
        for option in (socket.SO_REUSEPORT, socket.SO_REUSEADDR):
            held.setsockopt(socket.SOL_SOCKET, option, 1)
        held.bind((HOST, 0))
        port: int = held.getsockname()[1]
        return port

    def close(self) -> None:
        while self._sockets:
            self._sockets.pop().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
