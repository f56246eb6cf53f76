"""The device plugin of new nodes registers late, or never: the Node is Ready and offers no GPU."""

from __future__ import annotations

from typing import ClassVar

from harness.faults.fault import Strike, Variant
from harness.faults.fidelity import ON_MACHINES, FidelityMap
from harness.faults.holding import PoolHoldFault, turn
from harness.faults.sight import cloud_pool_of, gpus, is_ready, nodes_of
from harness.spec.model import Seconds


class DevicePluginLate(PoolHoldFault):
    """Blast radius: nodes of the pool that boot within ``hold_s`` are without GPUs for ``late_s`` more than usual, or
    until it is healed."""

    name: ClassVar[str] = "device_plugin_late"
    colour: ClassVar[str] = "#9edae5"
    fidelity: ClassVar[FidelityMap] = ON_MACHINES
    variants: ClassVar[tuple[Variant, ...]] = (
        Variant(
            "late by a minute",
            "a driver that is compiled at boot",
            {"pool": "on-demand", "hold_s": 240, "late_s": 60},
            demand_gpus=14,
        ),
        Variant(
            "never",
            "karpenter-provider-azure#1790: Initialized stays Unknown for ever, nothing replaces the node",
            {"pool": "on-demand", "hold_s": 240},
            demand_gpus=14,
        ),
    )

    late_s: Seconds | None = None

    async def inject(self, strike: Strike) -> None:
        await turn(strike, "device.plugin_late", self.pool, "never" if self.late_s is None else self.late_s)

    async def signs(self, strike: Strike) -> dict[str, str]:
        """A node is without GPUs for some seconds in the best of worlds: 20 s after Ready is late."""
        nodes = (await nodes_of(strike.ground.kube)).items()
        bare = {n: node for n, node in nodes if is_ready(node) and not gpus(node)}
        found: dict[str, str] = {}
        for name, node in bare.items():
            if (bare_s := strike.unchanged_s(name, "bare")) > 20.0:
                found[cloud_pool_of(node)] = f"{cloud_pool_of(node)}: {name} is Ready for {bare_s:.0f} s, without a GPU"
        for name in [name for name in strike.notes if name not in bare]:
            del strike.notes[name]
        return found

    def expected(self) -> tuple[str, str]:
        return (
            "a new node of the pool is Ready for 20 s without nvidia.com/gpu",
            "was a node added at all? kubectl get nodeclaims; without demand there is none",
        )
