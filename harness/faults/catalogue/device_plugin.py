"""The device plugin of a node dies, or misses that the kubelet was restarted: its GPUs are gone for Kubernetes."""

from __future__ import annotations

from typing import ClassVar, Literal

from harness.faults.fault import Strike, Variant
from harness.faults.fidelity import ON_MACHINES, FidelityMap
from harness.faults.holding import NodeHoldFault, turn
from harness.faults.sight import gpus, nodes_of
from harness.faults.undoing import world_of

_ONE = {"selector": "nvidia.com/gpu.present=true", "count": 1}


class DevicePluginDown(NodeHoldFault):
    """Blast radius: the picked nodes offer no GPU for ``hold_s``; pods that have theirs go on."""

    name: ClassVar[str] = "device_plugin_down"
    colour: ClassVar[str] = "#17becf"
    fidelity: ClassVar[FidelityMap] = ON_MACHINES
    variants: ClassVar[tuple[Variant, ...]] = (
        Variant("plugin crashes and returns", "an update of the DaemonSet", {"nodes": _ONE, "hold_s": 60}),
        Variant(
            "kubelet restarts, plugin does not register again",
            "kubernetes#109595: the plugin missed that the socket was gone",
            {"nodes": _ONE, "hold_s": 60, "how": "deaf"},
        ),
    )

    how: Literal["crash", "deaf"] = "crash"

    def seen_s(self) -> float:
        return 30.0

    async def inject(self, strike: Strike) -> None:
        for node in strike.targets:
            if self.how == "crash":
                await turn(strike, "device.plugin", node, "down")
            else:
                await turn(strike, "device.plugin_deaf", node, True)
                await world_of(strike.ground).do("restart_kubelet", node, {})

    async def signs(self, strike: Strike) -> dict[str, str]:
        nodes = await nodes_of(strike.ground.kube)
        return {
            name: f"{name}: allocatable has no GPU"
            for name, node in nodes.items()
            if gpus(node) == 0 and "nvidia.com/gpu.present" in (node["metadata"].get("labels") or {})
        }

    def expected(self) -> tuple[str, str]:
        return "nvidia.com/gpu in the node's allocatable is 0", "kubectl get node -o yaml: status.allocatable"
