"""Nodes are drained by hand, as before an upgrade: cordoned, and their pods evicted as budgets allow."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import ClassVar

from harness.errors import TargetError
from harness.faults.fault import NodeFault, Strike, Variant
from harness.faults.fidelity import EVERYWHERE, FidelityMap
from harness.faults.holding import HoldFault
from harness.faults.permissions import Need
from harness.faults.port import Ground
from harness.faults.sight import nodes_of, pods_of
from harness.faults.undo import ObjectRef, RestoreFields
from harness.kube.port import NODE, POD, ApiError, Json, NotFound

FORBIDDEN = 403
RETRY_S = 5.0
"""Scenario seconds until an eviction that a budget refused is tried again (kubectl v1.37 drain waits as long)."""


class NodeDrain(HoldFault, NodeFault):
    """Blast radius: the picked nodes take no new pods for ``hold_s``; their pods of the workload's namespace are
    evicted, one try each 5 s where a budget refuses, and go elsewhere if there is room. Pods of other namespaces and of
    DaemonSets stay. The nodes take pods again afterwards."""

    name: ClassVar[str] = "node_drain"
    colour: ClassVar[str] = "#9c755f"
    drains: ClassVar[bool] = True
    fidelity: ClassVar[FidelityMap] = EVERYWHERE
    undone_by: ClassVar[tuple[str, ...]] = (RestoreFields.kind,)
    variants: ClassVar[tuple[Variant, ...]] = (
        Variant(
            "kubectl drain",
            "an upgrade of the nodes, one after the other",
            {"nodes": {"selector": "nvidia.com/gpu.present=true", "count": 1}, "hold_s": 120},
        ),
    )

    def needs(self, namespace: str) -> tuple[Need, ...]:
        return (Need(NODE, ("get", "patch")), Need(POD, ("create",), "eviction", namespace))

    async def remember(self, ground: Ground, targets: Sequence[str]) -> Mapping[str, str]:
        """The pods that are to go, by name, with their node."""
        return {name: _node(pod) for name, pod in (await pods_of(ground)).items() if not _of_a_daemon_set(pod)}

    async def inject(self, strike: Strike) -> None:
        kube = strike.ground.kube
        if not set(strike.targets) & set(strike.before.values()):
            raise TargetError(
                f"{', '.join(strike.targets)} runs no pod that a drain could move",
                hint="name a node that serves, or begin later",
            )
        for name in strike.targets:
            ours: Json = {"spec": {"unschedulable": True}}
            strike.will_undo(RestoreFields(ObjectRef("v1", "Node", name), ours, {"spec": {"unschedulable": None}}))
            try:
                await kube.patch(NODE, name, ours)
            except NotFound as error:
                raise TargetError(f"node {name} is not there any more") from error
        # Where budgets refuse every pod it has not begun yet: the first that may go is what is looked for afterwards.
        loop, pause_s = asyncio.get_running_loop(), strike.ground.clock.clock_s(RETRY_S)
        until_s = loop.time() + strike.ground.clock.clock_s(self.hold_s)
        while not await self._evict(strike) and loop.time() + pause_s < until_s:
            await asyncio.sleep(pause_s)

    async def while_held(self, strike: Strike, until_s: float) -> None:
        loop, pause_s = asyncio.get_running_loop(), strike.ground.clock.clock_s(RETRY_S)
        while (left_s := until_s - loop.time()) > 0:
            await asyncio.sleep(min(pause_s, left_s))
            await self._evict(strike)

    async def _evict(self, strike: Strike) -> bool:
        """Each pod that is still there, once. A refusal is a budget's answer (429; 500 where two hold one pod), and is
        asked for again later. Whether one may go, or none is there to go."""
        refused = gone = 0
        for name, pod in (await pods_of(strike.ground)).items():
            leaving = bool(pod["metadata"].get("deletionTimestamp"))
            if _node(pod) not in strike.targets or leaving or _of_a_daemon_set(pod):
                continue
            namespace, _, short = name.partition("/")
            try:
                await strike.ground.kube.evict(short, namespace)
                gone += 1
            except ApiError as error:
                if error.status == FORBIDDEN:
                    raise
                refused += 1
        return gone > 0 or refused == 0

    async def signs(self, strike: Strike) -> dict[str, str]:
        """A node that takes no pods, and whose pods of before are on their way or gone, if it had any: one has."""
        nodes, pods = await nodes_of(strike.ground.kube), await pods_of(strike.ground)
        found: dict[str, str] = {}
        for name, node in nodes.items():
            if not (node.get("spec") or {}).get("unschedulable"):
                continue
            had = [pod for pod, where in strike.before.items() if where == name]
            going = [p for p in had if p not in pods or pods[p]["metadata"].get("deletionTimestamp")]
            if going or not had:
                found[name] = f"{name}: takes no pods, and {len(going)} of {len(had)} pods go"
        return found

    def expected(self) -> tuple[str, str]:
        what = "the node is unschedulable, and a pod that was on it is terminating or gone"
        return what, "kubectl describe node; does a disruption budget refuse every eviction?"


def _node(pod: Json) -> str:
    return str(pod["spec"].get("nodeName", ""))


def _of_a_daemon_set(pod: Json) -> bool:
    return any(owner.get("kind") == "DaemonSet" for owner in pod["metadata"].get("ownerReferences") or ())
