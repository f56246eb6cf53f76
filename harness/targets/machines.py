"""What a real node machine can be made to do: the port on which the faults of nodes stand where kubelets are real.

A machine is known by the name of its Node. ``kind`` does these deeds to containers, ``node`` to processes in
namespaces. Every deed is idempotent, has been done when it returns, and raises ``TargetError`` when it could not be.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping
from typing import Any, Protocol


class Trouble(enum.StrEnum):
    """What can ail a machine until it is relieved. The names are the values of the knob ``node.kubelet``."""

    SILENT = "silent"
    """The kubelet's process stands still; its pods run on."""
    FROZEN = "frozen"
    """Everything on the machine stands still."""
    OFF = "off"
    """Without power. Relieved, it boots."""
    DISCONNECTED = "disconnected"
    """No network, neither for the kubelet nor for pods."""
    CUT_OFF = "cut_off"
    """The kubelet does not reach the API server; pods reach everybody."""
    RUNTIME_DOWN = "runtime_down"
    """The container runtime is stopped; its containers run on."""


class Machines(Protocol):
    @property
    def cannot(self) -> Mapping[Trouble, str]:
        """Which troubles these machines cannot have, and why."""
        ...

    def names(self) -> Collection[str]:
        """Those that have power, or had it until a trouble took it."""
        ...

    async def trouble(self, node: str, trouble: Trouble) -> None: ...

    async def relieve(self, node: str, trouble: Trouble) -> None: ...

    async def restart_kubelet(self, node: str) -> None: ...

    async def power_on(self, node: str) -> None:
        """Of a machine that is parked. It boots, and its kubelet registers its Node."""
        ...

    async def power_off(self, node: str) -> None:
        """At once, with all that runs on it."""
        ...

    async def shut_down(self, node: str) -> None:
        """In good order, until it is parked."""
        ...

    async def switch_plugin(self, node: str, switches: Mapping[str, Any]) -> None:
        """What is wrong with the node's device plugin from now on, by the names of ``fakes.device_plugin``'s switches;
        nothing, if there are none."""
        ...
