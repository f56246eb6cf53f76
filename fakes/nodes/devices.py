"""The kubelet's device manager for one resource: what it tells the Node's status, and which pod holds which device.

Behaviour as of kubernetes v1.37 pkg/kubelet/cm/devicemanager: a resource nobody has registered has no key at all; a
plugin that went away leaves the capacity for five minutes and takes all of allocatable at once; a kubelet that was
restarted knows the resource from its checkpoint, as 0 of 0, until the plugin is back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Protocol

from fakes.timing import Timing

STOPPED_FORGOTTEN_S = 300
"""Scenario seconds after which a plugin that went away takes the capacity along (endpointStopGracePeriod)."""


LEAKED = "leaked"


class AllocationRefused(Exception):
    """The pod cannot be admitted. The message is the kubelet's own."""

    def __init__(self, why: str) -> None:
        super().__init__(f"Allocate failed due to {why}, which is unexpected")


class PluginError(Exception):
    """What a plugin's Allocate answered instead of devices, as gRPC words it."""


class Plugin(Protocol):
    """The device plugin as the kubelet sees it."""

    async def allocate(self, ids: tuple[str, ...]) -> None:
        """Raises ``PluginError``. May take its time, or never come back."""
        ...


class DeviceManager:
    """``changed`` is called whenever the Node's status would look different, ``health_changed`` when a device that some
    pod holds was reported as something else."""

    def __init__(
        self,
        resource: str,
        timing: Timing,
        changed: Callable[[], None],
        health_changed: Callable[[], None],
        *,
        forgetful: bool = False,
    ) -> None:
        """``forgetful`` plants the bug of a device manager that gives out what others hold."""
        self.resource = resource
        self._forgetful = forgetful
        self._timing = timing
        self._changed = changed
        self._health_changed = health_changed
        self._plugin: Plugin | None = None
        self._devices: dict[str, bool] = {}
        self._known = False
        self._stopped_s: float | None = None
        self._reported: dict[str, bool] = {}
        self._holders: dict[str, tuple[str, str]] = {}

    # The plugin's side.

    def register(self, plugin: Plugin, devices: Mapping[str, bool]) -> None:
        self._plugin, self._stopped_s, self._known = plugin, None, True
        self.list(plugin, devices)

    def list(self, plugin: Plugin, devices: Mapping[str, bool]) -> None:
        """The whole list, as ListAndWatch sends it. One from a plugin that is not the registered one is not heard."""
        if plugin is not self._plugin:
            return
        self._devices = dict(devices)
        health = {id: devices.get(id, False) for id in (*self._reported, *devices)}
        moved = any(self._reported.get(id) is not ok for id, ok in health.items() if id in self._holders)
        self._reported = health
        self._changed()
        if moved:
            self._health_changed()

    def disconnect(self, plugin: Plugin) -> None:
        """The plugin's stream has ended. Pods that hold devices are told nothing."""
        if plugin is not self._plugin:
            return
        loop = asyncio.get_running_loop()
        self._plugin, self._stopped_s = None, loop.time()
        self._devices = dict.fromkeys(self._devices, False)
        self._changed()
        loop.call_later(self._timing.clock_s(STOPPED_FORGOTTEN_S), self._changed)

    def restarted(self) -> None:
        """The kubelet began anew, with nothing but its checkpoint: the resource's name, and who holds what."""
        self._plugin, self._devices, self._stopped_s = None, {}, None
        self._changed()

    # The kubelet's side.

    def in_status(self) -> tuple[int, int] | None:
        """(capacity, allocatable); None where the status has no key for the resource."""
        if not self._known:
            return None
        if self._stopped_s is not None:
            age_s = asyncio.get_running_loop().time() - self._stopped_s
            if age_s >= self._timing.clock_s(STOPPED_FORGOTTEN_S):
                return 0, 0
        return len(self._devices), sum(self._devices.values())

    def health(self, id: str) -> str:
        """What the pod's status says of a device it holds: as last listed, whatever became of the plugin since."""
        return "Healthy" if self._reported.get(id, True) else "Unhealthy"

    async def allocate(self, holder: str, container: str, count: int) -> tuple[str, ...]:
        """The devices of one container of the pod with uid ``holder``. Raises ``AllocationRefused``; then nothing is
        held. A resource that nobody ever registered is none of the device manager's business: no devices."""
        if not self._known:
            return ()
        held = tuple(id for id, whose in self._holders.items() if whose == (holder, container))
        healthy = {id for id, ok in self._devices.items() if ok}
        if not healthy:
            raise AllocationRefused(f"no healthy devices present; cannot allocate unhealthy devices {self.resource}")
        if not healthy.issuperset(held):
            raise AllocationRefused(
                f"previously allocated devices are no longer healthy; cannot allocate unhealthy devices {self.resource}"
            )
        if len(held) == count:
            return held
        taken = {} if self._forgetful else self._holders
        free = [id for id in self._devices if id in healthy and id not in taken]
        if len(free) < count:
            raise AllocationRefused(
                f"requested number of devices unavailable for {self.resource}. "
                f"Requested: {count}, Available: {len(free)}"
            )
        ids = tuple(free[:count])
        self._holders |= dict.fromkeys(ids, (holder, container))
        try:
            assert self._plugin is not None, "healthy devices come from a plugin that is there"
            await self._plugin.allocate(ids)
        except PluginError as error:
            for id in ids:
                del self._holders[id]
            raise AllocationRefused(str(error)) from error
        return ids

    def release(self, holder: str) -> None:
        self._holders = {id: whose for id, whose in self._holders.items() if whose[0] != holder}

    def leak(self, count: int) -> None:
        """Takes free devices for holders that do not exist; gives those of before back first."""
        self.release(LEAKED)
        free = [id for id in self._devices if id not in self._holders]
        self._holders |= dict.fromkeys(free[:count], (LEAKED, ""))

    def holders(self) -> dict[str, tuple[str, str]]:
        """(uid of the pod, container) by device."""
        return dict(self._holders)
