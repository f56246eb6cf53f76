"""Allocate goes wrong: it fails, takes long, or hands out what somebody dead still holds. Pods are refused, or wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from harness.faults.fault import Strike, Variant
from harness.faults.fidelity import ON_MACHINES, REAL_KUBELETS, FidelityMap
from harness.faults.holding import NodeHoldFault, turn
from harness.faults.port import Ground
from harness.faults.sight import pods_of
from harness.kube.port import Json
from harness.spec.model import Count, Seconds

_ONE = {"selector": "nvidia.com/gpu.present=true", "count": 1}
REFUSED = "UnexpectedAdmissionError"
XID = "Xid 79: GPU has fallen off the bus"
WAITS_S = 10.0


class DeviceAllocate(NodeHoldFault):
    """Blast radius: pods with GPUs that come to the picked nodes within ``hold_s`` are refused, which a ReplicaSet
    answers with ever more pods, or wait for ``slow_s``. Pods that run there go on."""

    name: ClassVar[str] = "device_allocate"
    colour: ClassVar[str] = "#1f77b4"
    fidelity: ClassVar[FidelityMap] = ON_MACHINES
    variants: ClassVar[tuple[Variant, ...]] = (
        Variant(
            "fails",
            "a storm of UnexpectedAdmissionError: a Deployment makes pods as fast as they are refused",
            {"nodes": _ONE, "hold_s": 60},
            demand_gpus=12,
        ),
        Variant(
            "slow", "a plugin that resets the GPU first", {"nodes": _ONE, "hold_s": 90, "how": "slow"}, demand_gpus=12
        ),
        Variant(
            "stale allocation",
            "kubernetes#130145: devices held in the books by pods long gone",
            {"nodes": _ONE, "hold_s": 60, "how": "stale", "devices": 4},
            demand_gpus=12,
        ),
    )

    how: Literal["fails", "slow", "stale"] = "fails"
    slow_s: Seconds = 60.0
    devices: Count = 1

    def cannot_on(self, target: str) -> str | None:
        if self.how == "stale" and target in REAL_KUBELETS:
            return "the books of a real kubelet cannot be falsified from outside"
        return None

    def seen_s(self) -> float:
        return self.hold_s  # it shows when the next pod comes

    def healed_s(self) -> float | None:
        return None  # pods that were refused stay refused; it shows on the next one

    async def remember(self, ground: Ground, targets: Sequence[str]) -> Mapping[str, str]:
        return {name: pod["metadata"]["uid"] for name, pod in (await pods_of(ground)).items()}

    async def inject(self, strike: Strike) -> None:
        for node in strike.targets:
            match self.how:
                case "fails":
                    await turn(strike, "device.allocate_error", node, XID)
                case "slow":
                    await turn(strike, "device.allocate_s", node, self.slow_s)
                case "stale":
                    await turn(strike, "device.stale", node, self.devices)

    async def signs(self, strike: Strike) -> dict[str, str]:
        found: dict[str, str] = {}
        for name, pod in (await pods_of(strike.ground)).items():
            node = str(pod["spec"].get("nodeName", ""))
            if not node or strike.before.get(name) == pod["metadata"]["uid"]:
                continue
            status: Json = pod.get("status") or {}
            if self.how == "slow":
                waits_s = strike.unchanged_s(name, "" if "startTime" in status else "bound")
                if "startTime" not in status and waits_s > WAITS_S:
                    found[node] = f"{node}: {name} is bound for {waits_s:.0f} s and was not admitted"
            elif status.get("reason") == REFUSED:
                found[node] = f"{node}: {name} was refused with {REFUSED}"
        return found

    def expected(self) -> tuple[str, str]:
        what = "a new pod waits for its admission" if self.how == "slow" else f"a new pod is refused with {REFUSED}"
        return what, "did a pod with a GPU come to that node at all? kubectl get pods -o wide"
