"""A node falls silent: its kubelet says no more, or the whole machine stands still."""

from __future__ import annotations

import asyncio
from typing import ClassVar, Literal

from harness.faults.fault import Strike, Variant
from harness.faults.fidelity import ON_MACHINES, REAL_KUBELETS, FidelityMap
from harness.faults.holding import NodeHoldFault, flap, turn
from harness.faults.permissions import Need
from harness.faults.sight import condition, is_ready, nodes_of, renew_times
from harness.kube.port import LEASE
from harness.spec.model import Count, SecondsFromZero

SILENT_S = 25.0
"""Scenario seconds without a renewal after which a lease has stopped: a kubelet renews it each 10."""
NOT_READY_S = 75.0
"""By then the node controller has noticed: it looks each 5 s and waits for 50."""
RUNTIME_DOWN_S = 150.0
"""A kubelet asks its container runtime for half a minute before it says so, by the clock, whatever the time scale
(kubernetes v1.37, pkg/kubelet, ``maxWaitForContainerRuntime``); this is enough at a time scale of 4."""
BOOT_S = 120.0
"""A machine whose power is back boots in its own time."""
_NEED_A_MACHINE = ("off", "disconnected", "runtime_down")
_ONE = {"selector": "nvidia.com/gpu.present=true", "count": 1}


class NodeSilent(NodeHoldFault):
    """Blast radius: the picked nodes send no heartbeat for ``hold_s``; beyond 50 s they are NotReady and their
    endpoints go, beyond 350 s their pods are deleted. With ``how: frozen`` their pods stand still, too."""

    name: ClassVar[str] = "node_silent"
    colour: ClassVar[str] = "#8c564b"
    fidelity: ClassVar[FidelityMap] = ON_MACHINES
    variants: ClassVar[tuple[Variant, ...]] = (
        Variant("lease stops", "the kubelet is stuck for less than the grace", {"nodes": _ONE, "hold_s": 45}),
        Variant(
            "NotReady while pods still serve",
            "the trap: nothing is wrong with the pods, but their endpoints go",
            {"nodes": _ONE, "hold_s": 150, "until": "not ready"},
        ),
        Variant("flapping", "silent and back, three times", {"nodes": _ONE, "hold_s": 200, "flaps": 3}),
        Variant(
            "one after another",
            "a rolling trouble of the network: the second 30 s after the first",
            {"nodes": {**_ONE, "count": 2}, "hold_s": 150, "stagger_s": 30, "until": "not ready"},
        ),
        Variant(
            "as many as stop eviction",
            "more than two and 55 % of a zone: the node controller evicts nobody any more",
            {"nodes": {**_ONE, "count": 4}, "hold_s": 150, "until": "not ready"},
        ),
        Variant(
            "machine frozen, then back",
            "a hypervisor that stalls: pods and connections stand still",
            {"nodes": _ONE, "hold_s": 150, "how": "frozen", "until": "not ready"},
        ),
    )

    how: Literal["silent", "frozen", "off", "disconnected", "runtime_down"] = "silent"
    """What ails the machine. The last three need one that is real: its power, its network, its container runtime."""
    until: Literal["lease stops", "not ready"] = "lease stops"
    flaps: Count = 1
    stagger_s: SecondsFromZero = 0.0

    def cannot_on(self, target: str) -> str | None:
        if self.how in _NEED_A_MACHINE and target not in REAL_KUBELETS:
            return f"{self.how}: its nodes are no machines; there is silent and frozen"
        if self.how == "runtime_down" and self.until == "lease stops":
            return "runtime_down: a kubelet without its container runtime renews its lease; say until: not ready"
        return None

    def seen_s(self) -> float:
        if self.how == "runtime_down":
            return RUNTIME_DOWN_S
        first_s = NOT_READY_S if self.until == "not ready" else SILENT_S + 15.0
        return first_s + self.stagger_s * (self.nodes.count - 1)

    def healed_s(self) -> float:
        return BOOT_S if self.how == "off" else 60.0

    def needs(self, namespace: str) -> tuple[Need, ...]:
        return (Need(LEASE, ("list",), namespace="kube-node-lease"),)

    async def inject(self, strike: Strike) -> None:
        for index, node in enumerate(strike.targets):
            if index and self.stagger_s:
                await asyncio.sleep(strike.ground.clock.clock_s(self.stagger_s))
            await turn(strike, "node.kubelet", node, self.how)

    async def signs(self, strike: Strike) -> dict[str, str]:
        kube = strike.ground.kube
        nodes, renewed = await nodes_of(kube), await renew_times(kube, "kube-node-lease")
        found: dict[str, str] = {}
        for name, node in nodes.items():
            if self.until == "not ready":
                if not is_ready(node):
                    found[name] = f"{name}: Ready is {condition(node, 'Ready').get('status', 'absent')}"
            elif (silent_s := strike.unchanged_s(name, renewed.get(name, ""))) > SILENT_S and name in renewed:
                found[name] = f"{name}: its lease was not renewed for {silent_s:.0f} s"
        return found

    def expected(self) -> tuple[str, str]:
        what = "Ready is no longer True" if self.until == "not ready" else f"no renewal of its lease for {SILENT_S:g} s"
        return what, "kubectl get lease -n kube-node-lease, kubectl describe node: did the kubelet go on?"

    async def while_held(self, strike: Strike, until_s: float) -> None:
        await flap(strike, "node.kubelet", self.how, self.flaps, self.hold_s, until_s)
