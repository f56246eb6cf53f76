"""The device plugin of a node: the vendor's process that tells the kubelet of GPUs. Its faults are its methods."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from fakes.nodes.devices import DeviceManager, PluginError
from fakes.nodes.dra_driver import DraDriver
from fakes.timing import Timing


class DevicePlugin:
    """Nothing is registered before ``start``. Durations are scenario seconds. ``manager`` is whom it tells: the
    kubelet's device manager, or a DRA driver, which writes a ResourceSlice."""

    def __init__(self, manager: DeviceManager | DraDriver, ids: Iterable[str], timing: Timing) -> None:
        self._manager = manager
        self._timing = timing
        self._devices = dict.fromkeys(ids, True)
        self._resumed = asyncio.Event()
        self._resumed.set()
        self._died = asyncio.Event()
        self._missed_restart = False
        self.running = False
        self.registers_again = True
        """Whether it notices that the kubelet was restarted. One that does not is never heard of again."""
        self.late_s: float = 0.0
        """By how much later than the preset says it starts on a machine that boots; ``math.inf``: never."""
        self.allocate_error: str | None = None
        """What every Allocate fails with, e.g. ``Xid 79 GPU has fallen off the bus``."""
        self.allocate_s: float = 0.0
        """How long an Allocate takes."""

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(self._devices)

    @property
    def health(self) -> dict[str, bool]:
        """By device, as the hardware is, whoever has been told."""
        return dict(self._devices)

    def start(self) -> None:
        """The process starts and registers. Devices that were unhealthy stay so."""
        if not self.running:
            self.running = True
            self._died = asyncio.Event()
            self._manager.register(self, self._devices)

    def crash(self) -> None:
        """SIGKILL."""
        if self.running:
            self.running = False
            self._died.set()
            self._resumed.set()
            self._manager.disconnect(self)

    def hang(self) -> None:
        """SIGSTOP: the connection stays, nothing is sent, and an Allocate does not come back."""
        if self.running:
            self._resumed.clear()

    def resume(self) -> None:
        if not self._resumed.is_set():
            self._resumed.set()
            if self._missed_restart:
                self.kubelet_restarted()
            else:
                self._send()

    def set_health(self, id: str, healthy: bool) -> None:
        if id not in self._devices:
            raise KeyError(f"no device {id} on this node; there are {', '.join(self._devices) or 'none'}")
        self._devices[id] = healthy
        self._send()

    def set_devices(self, ids: Iterable[str]) -> None:
        """The whole list anew: devices that appear are healthy, those that are left out are gone."""
        self._devices = {id: self._devices.get(id, True) for id in ids}
        self._send()

    def kubelet_restarted(self) -> None:
        """The kubelet has deleted all sockets in its folder. A plugin that hangs sees it once it goes on."""
        self._missed_restart = not self._resumed.is_set()
        if self.running and self.registers_again and not self._missed_restart:
            self._manager.register(self, self._devices)

    async def allocate(self, ids: tuple[str, ...]) -> None:
        if not self._resumed.is_set():
            await self._resumed.wait()
        if self.allocate_s > 0:
            try:
                async with asyncio.timeout(self._timing.clock_s(self.allocate_s)):
                    await self._died.wait()
            except TimeoutError:
                pass
        if not self.running:
            raise PluginError("rpc error: code = Unavailable desc = Cancelling all calls")
        if self.allocate_error is not None:
            raise PluginError(f"rpc error: code = Internal desc = {self.allocate_error}")

    def _send(self) -> None:
        if self.running and self._resumed.is_set():
            self._manager.list(self, self._devices)
