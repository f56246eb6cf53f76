"""Addresses at which pods, and kubelets, really listen, without root: a /16 of 127/8, where all lead to this machine.

For who goes by ``status.podIP`` alone, as an endpoint picker does. EndpointSlices take no such address (kubernetes
v1.37, pkg/apis/core/validation, ValidateEndpointIP), so Services have no endpoints in such a world.
"""

from __future__ import annotations

import errno
import socket

_FIRST, _LAST = 16, 250
_LOCK_PORT = 20009
"""Of UDP; held on the first address of the range, so that two worlds on one machine have ranges of their own."""
MACHINES_MAX = 256


class Loopback:
    """One range, held until the process ends or ``close``."""

    def __init__(self) -> None:
        self._held, self._net = _hold()

    def address(self, machine: int, number: int) -> str:
        """Of the ``number``-th pod of a machine; addresses come round after 250, as elsewhere."""
        return self._in_net(machine, 2 + number % 250)

    def of_machine(self, machine: int) -> str:
        """Its own, which none of its pods has."""
        return self._in_net(machine, 1)

    def _in_net(self, machine: int, host: int) -> str:
        if machine >= MACHINES_MAX:
            raise OSError(errno.EADDRNOTAVAIL, f"pods of more than {MACHINES_MAX} machines have no addresses of 127/8")
        return f"127.{self._net}.{machine}.{host}"

    def close(self) -> None:
        self._held.close()


def _hold() -> tuple[socket.socket, int]:
    for net in range(_FIRST, _LAST + 1):
        held = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            held.bind((f"127.{net}.0.1", _LOCK_PORT))
        except OSError:
            held.close()
            continue
        return held, net
    raise OSError(errno.EADDRINUSE, "no range of 127/8 is free for pods")
