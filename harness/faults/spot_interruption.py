"""A spot instance gets its notice and is gone when the notice ends, whatever still runs on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from harness.errors import GuardRefused, InternalError, TargetError
from harness.faults.cloud_control import CloudControl, CloudInstance
from harness.faults.fleet import DISRUPTED_TAINT, has_disrupted_taint, is_leaving
from harness.faults.pick import FleetNode, pick_nodes
from harness.faults.port import Fidelity, Ground, NotObserved
from harness.faults.undo import CancelInterruption, Undo
from harness.faults.wait import TookTooLong, until
from harness.kube.port import NODE, NODE_CLAIM, Json, Kube, NotFound

REACTION_S = 60.0
"""Scenario seconds a cluster gets to react to a notice, and a Node object to go after its instance is lost."""


@dataclass(frozen=True, slots=True)
class SpotInterruption:
    """Blast radius: ``count`` nodes are lost with all their pods, ``notice_s`` scenario seconds after the notice."""

    name: ClassVar[str] = "spot_interruption"
    colour: ClassVar[str] = "#d62728"
    disruptive: ClassVar[bool] = True
    fidelity: ClassVar[Mapping[str, Fidelity]] = {
        "embedded": Fidelity.EMULATED,
        "controlplane": Fidelity.EMULATED,
    }

    selector: str
    count: int = 1
    notice_s: float = 120.0

    def pick(self, fleet: Sequence[FleetNode], rng: Random) -> tuple[str, ...]:
        return pick_nodes(fleet, self.selector, self.count, rng)

    def longest_s(self) -> float:
        return self._reaction_s + self.notice_s + REACTION_S

    @property
    def _reaction_s(self) -> float:
        return min(self.notice_s, REACTION_S)

    async def inject(self, ground: Ground, fault_id: str, targets: Sequence[str]) -> None:
        """Looks at every target before it touches the first, so that a bad pick leaves nothing half done."""
        cloud = _cloud(ground)
        if len(targets) > self.count:
            raise GuardRefused(f"{fault_id}: {len(targets)} targets, but count allows {self.count}")
        known = await cloud.instances()
        instances = [await _instance(ground.kube, known, name) for name in targets]
        for instance in instances:
            ground.undo.before(fault_id, CancelInterruption(instance.id, instance.node))
            await cloud.interrupt(instance.id, self.notice_s)

    async def observe(self, ground: Ground, targets: Sequence[str]) -> str:
        """The cluster's own reaction, read from the Kubernetes API: the cloud's answer to us proves nothing."""
        seen: dict[str, str] = {}

        async def look() -> str | None:
            for name in targets:
                if name not in seen and (sign := await sign_of_interruption(ground.kube, name)):
                    seen[name] = sign
            return "; ".join(seen[name] for name in targets) if len(seen) == len(targets) else None

        try:
            return await until(look, ground.within_s(self._reaction_s), ground.patience.poll_s)
        except TookTooLong as error:
            missing = ", ".join(name for name in targets if name not in seen)
            raise NotObserved(
                f"the cloud took the notice for {missing}, but the cluster did not react: no taint {DISRUPTED_TAINT}, "
                f"no deletion of its Node or NodeClaim {error}",
                hint="does a provisioner with an interruption queue run, and does it watch this cloud?",
            ) from error

    async def outlast(self, ground: Ground, fault_id: str, targets: Sequence[str]) -> str:
        async def look() -> str | None:
            left = [name for name in targets if await _node(ground.kube, name) is not None]
            return None if left else f"{', '.join(targets)}: the Node is gone"

        try:
            return await until(look, ground.within_s(self.notice_s + REACTION_S), ground.patience.poll_s)
        except TookTooLong:
            left = [name for name in targets if await _node(ground.kube, name) is not None]
            return (
                f"the notice of {self.notice_s:g} s ended and {REACTION_S:g} s more passed, "
                f"but the Node is still there: {', '.join(left) or 'it went just now'}"
            )

    @staticmethod
    async def heal(ground: Ground, undo: Undo) -> str:
        if not isinstance(undo, CancelInterruption):
            raise InternalError(f"spot_interruption cannot undo {undo.kind}")
        return await _cloud(ground).cancel_interruption(undo.instance_id)


async def sign_of_interruption(kube: Kube, node_name: str) -> str | None:
    """What in the cluster shows that this node is going, None when nothing does."""
    node = await _node(kube, node_name)
    if node is None:
        return f"{node_name}: the Node is gone"
    if has_disrupted_taint(node):
        return f"{node_name}: taint {DISRUPTED_TAINT}"
    if node["metadata"].get("deletionTimestamp"):
        return f"{node_name}: the Node is being deleted"
    try:
        claim = await kube.get(NODE_CLAIM, node_name)
    except NotFound:  # Also what a server without Karpenter's resources answers.
        return None
    return f"{node_name}: its NodeClaim is being deleted" if claim["metadata"].get("deletionTimestamp") else None


async def _instance(kube: Kube, known: Sequence[CloudInstance], node_name: str) -> CloudInstance:
    """The running instance behind a node that is not going already."""
    node = await _node(kube, node_name)
    if node is None:
        raise TargetError(f"node {node_name} is not there any more")
    if is_leaving(node):
        raise TargetError(f"node {node_name} is leaving already: an interruption there would prove nothing")
    provider_id = str(node.get("spec", {}).get("providerID", "")).rsplit("/", 1)[-1]
    found = [i for i in known if i.node == node_name] or [i for i in known if i.id == provider_id]
    if not found:
        raise TargetError(
            f"the cloud knows no instance for node {node_name} (providerID ends in {provider_id!r}); "
            f"it has: {', '.join(i.id for i in known) or 'none'}"
        )
    if found[0].state != "running":
        raise TargetError(f"instance {found[0].id} of node {node_name} is {found[0].state}, not running")
    return found[0]


async def _node(kube: Kube, name: str) -> Json | None:
    try:
        return await kube.get(NODE, name)
    except NotFound:
        return None


def _cloud(ground: Ground) -> CloudControl:
    if ground.cloud is None:
        raise GuardRefused(
            f"target {ground.target} has no cloud whose instances could be interrupted",
            hint="run this fault where the cloud is emulated: embedded",
        )
    return ground.cloud
