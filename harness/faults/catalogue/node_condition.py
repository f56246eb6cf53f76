"""An agent on a node reports that something is wrong with it, which its kubelet knows nothing of."""

from __future__ import annotations

from typing import ClassVar, Literal

from harness.faults.fault import Strike, Variant
from harness.faults.fidelity import ON_FAKES, FidelityMap
from harness.faults.holding import NodeHoldFault, turn
from harness.faults.sight import condition, nodes_of
from harness.spec.model import Text

_ONE = {"selector": "nvidia.com/gpu.present=true", "count": 1}


class NodeCondition(NodeHoldFault):
    """Blast radius: the picked nodes say of themselves for ``hold_s`` that they are unwell, and go on working; whoever
    repairs nodes by that condition drains and replaces them."""

    name: ClassVar[str] = "node_condition"
    colour: ClassVar[str] = "#a55194"
    fidelity: ClassVar[FidelityMap] = ON_FAKES
    variants: ClassVar[tuple[Variant, ...]] = (
        Variant(
            "a sick GPU",
            "a monitoring agent has read an XID error in the kernel's log; the kubelet says Ready all the while",
            {"nodes": _ONE, "hold_s": 45, "condition": "AcceleratedHardwareReady", "status": "False"},
        ),
    )

    condition: Text
    status: Literal["True", "False"] = "True"
    """Which of the two means trouble for this condition."""

    async def inject(self, strike: Strike) -> None:
        for node in strike.targets:
            await turn(strike, "node.condition", node, {"type": self.condition, "status": self.status})

    async def signs(self, strike: Strike) -> dict[str, str]:
        return {
            name: f"{name}: {self.condition} is {self.status}"
            for name, node in (await nodes_of(strike.ground.kube)).items()
            if condition(node, self.condition).get("status") == self.status
        }

    def expected(self) -> tuple[str, str]:
        return (
            f"{self.condition} is {self.status}",
            "kubectl describe node: does an agent report it, and under that name?",
        )
