"""A node runs out of memory or disk, and its kubelet evicts pods by itself: it asks no budget, and gives hardly any
grace."""

from __future__ import annotations

from typing import ClassVar, Literal

from harness.faults.fault import Strike, Variant
from harness.faults.fidelity import NODE, ON_FAKES, Fidelity, FidelityMap
from harness.faults.holding import NodeHoldFault, turn
from harness.faults.sight import condition, nodes_of

CONDITIONS = {"memory": "MemoryPressure", "disk": "DiskPressure"}
TRANSITION_S = 300.0
"""``evictionPressureTransitionPeriod``: for so long a node says that it is under pressure when it is not any more."""
_ONE = {"selector": "nvidia.com/gpu.present=true", "count": 1}


class NodePressure(NodeHoldFault):
    """Blast radius: the picked nodes are short of memory or disk for ``hold_s``, as by something beside their pods;
    each evicts a pod after the other, without asking a budget and with next to no grace, and takes no new ones."""

    name: ClassVar[str] = "node_pressure"
    colour: ClassVar[str] = "#b07aa1"
    fidelity: ClassVar[FidelityMap] = {**ON_FAKES, NODE: Fidelity.EMULATED}
    variants: ClassVar[tuple[Variant, ...]] = (
        Variant("memory", "a log shipper that leaks", {"nodes": _ONE, "hold_s": 45}),
        Variant("disk", "core dumps of crashing servers", {"nodes": _ONE, "hold_s": 45, "resource": "disk"}),
    )

    resource: Literal["memory", "disk"] = "memory"

    def cannot_on(self, target: str) -> str | None:
        if target == NODE and self.resource == "disk":
            return "disk: a kubelet short of disk deletes images, and these nodes have no registry to pull them from"
        return None

    def seen_s(self) -> float:
        return 120.0  # a real kubelet looks each 10 s of the clock, whatever the time scale

    def healed_s(self) -> float:
        return TRANSITION_S + 60.0

    async def inject(self, strike: Strike) -> None:
        for node in strike.targets:
            await turn(strike, "node.pressure", node, self.resource)

    async def signs(self, strike: Strike) -> dict[str, str]:
        found: dict[str, str] = {}
        for name, node in (await nodes_of(strike.ground.kube)).items():
            if condition(node, CONDITIONS[self.resource]).get("status") == "True":
                found[name] = f"{name}: {CONDITIONS[self.resource]} is True"
        return found

    def expected(self) -> tuple[str, str]:
        found = CONDITIONS[self.resource]
        return f"{found} is True", "kubectl describe node; what are the kubelet's eviction thresholds?"
