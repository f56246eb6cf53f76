"""Devices turn unhealthy one by one, or the plugin reports the wrong number of them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import ClassVar

from harness.faults.fault import Strike, Variant
from harness.faults.fidelity import ON_MACHINES, FidelityMap
from harness.faults.holding import NodeHoldFault, turn
from harness.faults.port import Ground
from harness.faults.sight import gpus, nodes_of
from harness.kube.port import RESOURCE_SLICE, NotFound
from harness.spec.model import Count, CountFromZero, SecondsFromZero

_ONE = {"selector": "nvidia.com/gpu.present=true", "count": 1}


class DeviceUnhealthy(NodeHoldFault):
    """Blast radius: ``devices`` GPUs of each picked node cannot be given out for ``hold_s``; who holds one goes on."""

    name: ClassVar[str] = "device_unhealthy"
    colour: ClassVar[str] = "#bcbd22"
    fidelity: ClassVar[FidelityMap] = ON_MACHINES
    variants: ClassVar[tuple[Variant, ...]] = (
        Variant("one", "a critical XID", {"nodes": _ONE, "hold_s": 60, "devices": 1}),
        Variant(
            "one by one, and back",
            "a failing NVLink takes three of four, 20 s apart",
            {"nodes": _ONE, "hold_s": 90, "devices": 3, "every_s": 20},
        ),
    )

    devices: Count
    every_s: SecondsFromZero = 0.0

    def seen_s(self) -> float:
        return 30.0 + self.every_s * self.devices

    async def remember(self, ground: Ground, targets: Sequence[str]) -> Mapping[str, str]:
        return {name: str(gpus(node) or 0) for name, node in (await nodes_of(ground.kube)).items()}

    async def inject(self, strike: Strike) -> None:
        for unhealthy in range(1, self.devices + 1) if self.every_s else (self.devices,):
            for node in strike.targets:
                await turn(strike, "device.unhealthy", node, unhealthy)
            if unhealthy < self.devices:
                await asyncio.sleep(strike.ground.clock.clock_s(self.every_s))

    async def signs(self, strike: Strike) -> dict[str, str]:
        found: dict[str, str] = {}
        nodes = await nodes_of(strike.ground.kube)
        for name, node in nodes.items():
            allocatable, capacity = gpus(node) or 0, gpus(node, "capacity") or 0
            if capacity - allocatable >= self.devices:
                found[name] = f"{name}: {allocatable} of {capacity} GPUs can be allocated"
        if not all(gpus(node, "capacity") for name, node in nodes.items() if name in strike.targets):
            found |= await self._tainted(strike)
        return found

    async def _tainted(self, strike: Strike) -> dict[str, str]:
        """Nodes whose GPUs are in ResourceSlices: their driver taints a device that is not well."""
        found: dict[str, str] = {}
        try:
            slices = (await strike.ground.kube.list(RESOURCE_SLICE)).items
        except NotFound:  # a server that knows none, and nodes whose plugin has not come yet
            return found
        for each in slices:
            devices, name = each["spec"].get("devices") or (), str(each["spec"].get("nodeName"))
            tainted = sum(bool(device.get("taints")) for device in devices)
            if tainted >= self.devices:
                found[name] = f"{name}: {tainted} of {len(devices)} devices of its ResourceSlice are tainted"
        return found

    def expected(self) -> tuple[str, str]:
        return (
            f"allocatable is {self.devices} GPUs below capacity",
            "kubectl get node -o yaml; does the plugin check health (DP_DISABLE_HEALTHCHECKS)?",
        )


class DeviceCount(NodeHoldFault):
    """Blast radius: each picked node reports ``devices`` GPUs for ``hold_s``, whatever it has."""

    name: ClassVar[str] = "device_count"
    colour: ClassVar[str] = "#dbdb8d"
    fidelity: ClassVar[FidelityMap] = ON_MACHINES
    variants: ClassVar[tuple[Variant, ...]] = (
        Variant("too few", "one GPU has fallen off the bus at boot", {"nodes": _ONE, "hold_s": 60, "devices": 3}),
        Variant("too many", "a time-slicing setting nobody meant", {"nodes": _ONE, "hold_s": 60, "devices": 8}),
    )

    devices: CountFromZero

    def seen_s(self) -> float:
        return 30.0

    async def inject(self, strike: Strike) -> None:
        for node in strike.targets:
            await turn(strike, "device.count", node, self.devices)

    async def remember(self, ground: Ground, targets: Sequence[str]) -> Mapping[str, str]:
        return {name: str(gpus(node, "capacity") or 0) for name, node in (await nodes_of(ground.kube)).items()}

    async def signs(self, strike: Strike) -> dict[str, str]:
        """Against what it had before; where that is not known (long after), any node of that many."""
        found: dict[str, str] = {}
        for name, node in (await nodes_of(strike.ground.kube)).items():
            capacity, before = gpus(node, "capacity") or 0, strike.before.get(name)
            if capacity == self.devices and before != str(capacity):
                found[name] = f"{name}: capacity says {capacity} GPUs" + (f", it had {before}" if before else "")
        return found

    def expected(self) -> tuple[str, str]:
        return f"the node's capacity says {self.devices} GPUs, other than before", "kubectl get node -o yaml"
