"""The cloud's machines as real ones: an instance that gets power boots, one that loses it is gone with its disk."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine
from typing import Any

from fakes.cloud.cloud import Instance
from fakes.control.control import Control
from fakes.control.knobs import NEVER, Value, one_of, seconds_or_never
from harness.errors import TargetError
from harness.targets.machine_knobs import NotDone, wire_machines
from harness.targets.node.machines import NamespaceMachines


class RealFleet:
    """Implements ``fakes.surroundings.Fleet``. Knobs are turned in scenario seconds; machines live by the clock."""

    def __init__(self, machines: NamespaceMachines, time_scale: float) -> None:
        self._machines = machines
        self._time_scale = time_scale
        self._late: dict[str, Value] = {}
        self._pool_of: dict[str, str] = {}
        self._deeds: asyncio.Queue[Coroutine[Any, Any, None]] = asyncio.Queue()
        self._locks: dict[str, asyncio.Lock] = {}
        self._gone: set[str] = set()

    def names(self) -> Collection[str]:
        return self._machines.names()

    def boot(self, instance: Instance) -> None:
        self._pool_of[instance.node] = instance.pool.name
        self._deeds.put_nowait(self._boot(instance))

    def lost(self, instance: Instance) -> None:
        self._deeds.put_nowait(self._lost(instance))

    async def run(self) -> None:
        """A deed that fails ends the world, which says why."""
        try:
            async with asyncio.TaskGroup() as tasks:
                while True:
                    tasks.create_task(await self._deeds.get())
        finally:
            while not self._deeds.empty():
                self._deeds.get_nowait().close()
            await self._machines.close()

    def wire(self, control: Control) -> None:
        wire_machines(control, self._machines)
        control.knobs.add("node.pressure", self._machines.names, one_of("memory"), self._press)
        pools = control.cloud.pools
        control.knobs.add("device.plugin_late", lambda: list(pools), seconds_or_never, self._turn_late)

    async def _press(self, node: str, value: Value) -> None:
        try:
            await self._machines.press(node, value is not None)
        except TargetError as error:
            raise NotDone(str(error)) from error

    async def _turn_late(self, pool: str, value: Value) -> None:
        """For machines that boot from now on; turned back, also for those whose plugin is waiting."""
        if value is not None:
            self._late[pool] = value if value == NEVER else float(value) / self._time_scale
            return
        self._late.pop(pool, None)
        for node in self._machines.names():
            if self._pool_of.get(node) == pool:
                await self._machines.switch_plugin(node, {})

    async def _boot(self, instance: Instance) -> None:
        late = self._late.get(instance.pool.name) if instance.machine.provisioned else None
        async with self._lock(instance.node):
            try:
                await self._machines.install(instance.machine, {} if late is None else {"plugin_late": late})
                await self._machines.power_on(instance.node)
            except TargetError:
                if instance.node not in self._gone:
                    raise

    async def _lost(self, instance: Instance) -> None:
        self._gone.add(instance.node)
        await self._machines.power_off(instance.node)  # at once, even in the middle of its boot
        async with self._lock(instance.node):
            await self._machines.remove(instance.node)

    def _lock(self, node: str) -> asyncio.Lock:
        return self._locks.setdefault(node, asyncio.Lock())
