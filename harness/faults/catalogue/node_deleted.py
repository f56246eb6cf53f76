"""The Node object is deleted under a machine that runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from harness.errors import TargetError
from harness.faults.fault import NodeFault, Strike, Variant
from harness.faults.fidelity import KUBECONFIG, ON_MACHINES, Fidelity, FidelityMap
from harness.faults.permissions import Need
from harness.faults.port import Ground
from harness.faults.sight import nodes_of
from harness.faults.undo import NothingLeft
from harness.kube.port import NODE, NotFound


class NodeDeleted(NodeFault):
    """Blast radius: the picked Nodes are deleted with their pods; where Karpenter holds a finalizer on them, they are
    drained, and their instances terminated."""

    name: ClassVar[str] = "node_deleted"
    colour: ClassVar[str] = "#e377c2"
    fidelity: ClassVar[FidelityMap] = {**ON_MACHINES, KUBECONFIG: Fidelity.NATIVE}
    takes_nodes: ClassVar[bool] = True
    undone_by: ClassVar[tuple[str, ...]] = (NothingLeft.kind,)
    variants: ClassVar[tuple[Variant, ...]] = (
        Variant(
            "Node object deleted",
            "kubectl delete node, by mistake or by a cleaner",
            {"nodes": {"selector": "nvidia.com/gpu.present=true", "count": 1}},
        ),
    )

    def healed_s(self) -> float | None:
        return None

    def needs(self, namespace: str) -> tuple[Need, ...]:
        return (Need(NODE, ("get", "list", "delete")),)

    async def remember(self, ground: Ground, targets: Sequence[str]) -> Mapping[str, str]:
        return {name: node["metadata"]["uid"] for name, node in (await nodes_of(ground.kube)).items()}

    async def inject(self, strike: Strike) -> None:
        for name in strike.targets:
            strike.will_undo(NothingLeft(f"Node {name} is the system's to replace, or its kubelet's to register anew"))
            try:
                await strike.ground.kube.delete(NODE, name, uid=strike.before.get(name))
            except NotFound as error:
                raise TargetError(f"Node {name} is gone, and somebody else took it") from error

    async def signs(self, strike: Strike) -> dict[str, str]:
        now = await nodes_of(strike.ground.kube)
        found: dict[str, str] = {}
        for name, uid in strike.before.items():
            if name not in now:
                found[name] = f"{name}: the Node is gone"
            elif now[name]["metadata"]["uid"] != uid:
                found[name] = f"{name}: another Node has its name"
            elif now[name]["metadata"].get("deletionTimestamp"):
                found[name] = f"{name}: the Node is being deleted"
        return found

    def expected(self) -> tuple[str, str]:
        return "the Node is gone or being deleted", "kubectl get nodes; does an admission webhook forbid it?"
