"""The network of a node is cut towards the API server, towards clients, or both."""

from __future__ import annotations

from typing import ClassVar, Literal

from harness.faults.fault import Strike, Variant
from harness.faults.fidelity import KIND, ON_MACHINES, REAL_KUBELETS, FidelityMap
from harness.faults.holding import NodeHoldFault, turn
from harness.faults.permissions import Need
from harness.faults.seen_traffic import silent_nodes
from harness.faults.sight import renew_times
from harness.kube.port import LEASE

SILENT_S = 25.0
_ONE = {"selector": "nvidia.com/gpu.present=true", "count": 1}


class NodePartition(NodeHoldFault):
    """Blast radius: the picked nodes and their pods reach one side no more for ``hold_s``. Without the API server they
    become NotReady after 50 s; without clients they stay Ready, and requests to their pods get no answer."""

    name: ClassVar[str] = "node_partition"
    colour: ClassVar[str] = "#c49c94"
    fidelity: ClassVar[FidelityMap] = ON_MACHINES
    variants: ClassVar[tuple[Variant, ...]] = (
        Variant("node and API server", "pods serve on, the cluster writes them off", {"nodes": _ONE, "hold_s": 90}),
        Variant(
            "node and clients",
            "all looks well to Kubernetes, and requests vanish",
            {"nodes": _ONE, "hold_s": 90, "side": "clients"},
        ),
        Variant("node and everybody", "a dead switch port", {"nodes": _ONE, "hold_s": 90, "side": "both"}),
    )

    side: Literal["api", "clients", "both"] = "api"

    def seen_s(self) -> float:
        return 60.0

    def healed_s(self) -> float:
        return 300.0  # requests that got stuck keep the gateway away from these pods until their clients give up

    def needs(self, namespace: str) -> tuple[Need, ...]:
        return (Need(LEASE, ("list",), namespace="kube-node-lease"),)

    async def inject(self, strike: Strike) -> None:
        for node in strike.targets:
            if self.side != "clients":
                # Hollow kubelets that reach nobody and those that stand still look alike; real ones do not.
                await turn(strike, "node.kubelet", node, self._cut(strike.ground.target))
            if self.side != "api":
                cut = {"latency_ms": 0, "loss_ratio": 1, "reset_ratio": 0}
                await turn(strike, "net.link", f"node/{node}", cut)

    def _cut(self, target: str) -> str:
        if target not in REAL_KUBELETS:
            return "silent"
        return "disconnected" if self.side == "both" and target == KIND else "cut_off"

    async def signs(self, strike: Strike) -> dict[str, str]:
        """For both sides both must show."""
        found: list[dict[str, str]] = []
        if self.side != "clients":
            renewed = await renew_times(strike.ground.kube, "kube-node-lease")
            aged = {name: strike.unchanged_s(name, stamp) for name, stamp in renewed.items()}
            found.append({n: f"{n}: its lease was not renewed for {s:.0f} s" for n, s in aged.items() if s > SILENT_S})
        if self.side != "api":
            found.append(await silent_nodes(strike))
        if len(found) == 1:
            return found[0]
        both = found[0].keys() & found[1].keys()
        return {name: f"{found[0][name]}, and {found[1][name]}" for name in sorted(both)}

    def expected(self) -> tuple[str, str]:
        api, clients = f"no renewal of its lease for {SILENT_S:g} s", "no answer from its pods while others answer"
        what = {"api": api, "clients": clients, "both": f"{api}, and {clients}"}[self.side]
        return what, "kubectl get lease -n kube-node-lease; gateway_requests_total of the gateway's /metrics"
