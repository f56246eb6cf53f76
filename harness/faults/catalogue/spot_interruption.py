"""A spot instance gets its notice and is gone when the notice ends, whatever still runs on it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from random import Random
from typing import ClassVar, Literal

from harness.errors import BadInput, TargetError
from harness.faults.fault import NodeFault, Strike, Variant
from harness.faults.fidelity import BESIDE_REAL_NODES, FidelityMap
from harness.faults.fleet import DISRUPTED_TAINT, has_disrupted_taint, is_leaving
from harness.faults.holding import pending_of, turn, undo_now
from harness.faults.pick import matching_nodes
from harness.faults.port import Ground
from harness.faults.scene import Scene
from harness.faults.undo import CancelInterruption, NothingLeft, ResetKnob
from harness.faults.undoing import world_of
from harness.faults.wait import TookTooLong, until
from harness.faults.world_control import CloudInstance
from harness.kube.port import NODE, NODE_CLAIM, Json, Kube, NotFound
from harness.spec.model import Flag, Seconds, SecondsFromZero

REACTION_S = 60.0
"""Scenario seconds a cluster gets to react to a notice, and a Node object to go after its instance is lost."""
ZONE = "topology.kubernetes.io/zone"
_SPOT = {"selector": "karpenter.sh/capacity-type=spot", "count": 1}


class SpotInterruption(NodeFault):
    """Blast radius: the picked nodes are lost with all their pods, ``notice_s`` scenario seconds after the notice."""

    name: ClassVar[str] = "spot_interruption"
    colour: ClassVar[str] = "#d62728"
    fidelity: ClassVar[FidelityMap] = BESIDE_REAL_NODES
    takes_nodes: ClassVar[bool] = True
    undone_by: ClassVar[tuple[str, ...]] = (CancelInterruption.kind, ResetKnob.kind, NothingLeft.kind)
    variants: ClassVar[tuple[Variant, ...]] = (
        Variant("notice of 120 s", "as AWS gives it", {"nodes": _SPOT, "notice_s": 120}),
        Variant("notice of 30 s", "as GCP and Azure give it", {"nodes": _SPOT, "notice_s": 30}),
        Variant("notice of 25 s", "less than any cloud promises", {"nodes": _SPOT, "notice_s": 25}),
        Variant("no notice", "hibernated, or the notice got lost", {"nodes": _SPOT, "notice_s": 0}),
        Variant(
            "rebalance recommendation first",
            "a warning without a date comes before the notice",
            {"nodes": _SPOT, "notice_s": 120, "rebalance_s": 60},
        ),
        Variant(
            "notice cancelled",
            "the cloud takes it back; what the cluster began because of it goes on",
            {"nodes": _SPOT, "notice_s": 120, "cancel_after_s": 40},
        ),
        Variant(
            "several zones at once",
            "one node in each of two zones",
            {"nodes": {**_SPOT, "count": 2}, "notice_s": 120, "one_per_zone": True},
        ),
        Variant(
            "loss in the middle of a drain",
            "the promised 120 s end after 20",
            {"nodes": _SPOT, "notice_s": 120, "lost_after_s": 20},
        ),
        Variant(
            "pool out of stock afterwards",
            "no instance of that pool is to be had any more",
            {"nodes": _SPOT, "notice_s": 120, "then_out_of_stock": "pool"},
        ),
        Variant(
            "replacement only on-demand",
            "no spot pool has an instance left",
            {"nodes": _SPOT, "notice_s": 120, "then_out_of_stock": "spot"},
        ),
    )

    notice_s: SecondsFromZero
    rebalance_s: SecondsFromZero = 0.0
    cancel_after_s: Seconds | None = None
    lost_after_s: Seconds | None = None
    one_per_zone: Flag = False
    then_out_of_stock: Literal["nothing", "pool", "spot"] = "nothing"

    @property
    def ends_s(self) -> float:
        return self.after_s + self.rebalance_s + self._lasts_s

    @property
    def _lasts_s(self) -> float:
        return min(self.notice_s, self.cancel_after_s or self.notice_s, self.lost_after_s or self.notice_s)

    def pick(self, scene: Scene, rng: Random) -> tuple[str, ...]:
        if not self.one_per_zone or (self.nodes.brought and not scene.running):
            return super().pick(scene, rng)
        zones: dict[str, list[str]] = {}
        able = set(matching_nodes(scene.nodes, self.nodes.selector))
        for node in sorted(scene.nodes, key=lambda n: n.name):
            if node.name in able:
                zones.setdefault(node.labels.get(ZONE, ""), []).append(node.name)
        if len(zones) < self.nodes.count:
            raise BadInput(
                f"nodes: {self.nodes.count} wanted in as many zones, but {self.nodes.selector!r} matches nodes in "
                f"{len(zones)} ({', '.join(sorted(zones)) or 'none'})",
                hint="lower count, widen the selector, or spread the pools over more zones",
            )
        return tuple(rng.choice(zones[zone]) for zone in sorted(rng.sample(sorted(zones), self.nodes.count)))

    def seen_s(self) -> float:
        return REACTION_S + self.rebalance_s

    def healed_s(self) -> float | None:
        return None  # a drain that a notice began goes on without it

    def longest_s(self) -> float:
        return self.seen_s() * 2 + self.rebalance_s + self.notice_s + REACTION_S

    async def remember(self, ground: Ground, targets: Sequence[str]) -> Mapping[str, str]:
        return {n["metadata"]["name"]: n["metadata"]["uid"] for n in (await ground.kube.list(NODE)).items}

    async def inject(self, strike: Strike) -> None:
        """Looks at every target before it touches the first, so that a bad pick leaves nothing half done."""
        world, ground = world_of(strike.ground), strike.ground
        known = await world.instances()
        instances = [await _instance(ground.kube, known, name) for name in strike.targets]
        for pool in await self._emptied(ground, instances):
            await turn(strike, "cloud.stock", pool, 0)
        if self.rebalance_s:
            strike.will_undo(NothingLeft("a recommendation is only said, and nobody can take it back"))
            for instance in instances:
                await world.do("rebalance", instance.id, {})
            await asyncio.sleep(ground.clock.clock_s(self.rebalance_s))
        for instance in instances:
            strike.will_undo(CancelInterruption(instance.id, instance.node))
            await world.interrupt(instance.id, self.notice_s)

    async def _emptied(self, ground: Ground, instances: Sequence[CloudInstance]) -> list[str]:
        if self.then_out_of_stock == "pool":
            return sorted({instance.pool for instance in instances})
        if self.then_out_of_stock == "spot":
            return sorted(await world_of(ground).pools("spot"))
        return []

    async def signs(self, strike: Strike) -> dict[str, str]:
        """The cluster's own reaction, read from the Kubernetes API."""
        kube = strike.ground.kube
        nodes = {node["metadata"]["name"]: node for node in (await kube.list(NODE)).items}
        claims = {claim["metadata"]["name"]: claim for claim in await _claims(kube)}
        found: dict[str, str] = {}
        for name in {**strike.before, **nodes}:
            if sign := sign_of_interruption(nodes.get(name), claims.get(name)):
                found[name] = f"{name}: {sign}"
        return found

    def expected(self) -> tuple[str, str]:
        return (
            f"the node gets the taint {DISRUPTED_TAINT}, is being deleted or gone, or its NodeClaim is being deleted",
            "does a provisioner with an interruption queue run, and does it watch this cloud?",
        )

    async def outlast(self, strike: Strike, since_s: float) -> str:
        ground, noticed_s = strike.ground, since_s + strike.ground.clock.clock_s(self.rebalance_s)
        if self.cancel_after_s is not None:
            await _sleep_until(noticed_s + ground.clock.clock_s(self.cancel_after_s))
            return "; ".join([await undo_now(strike, seq) for seq in reversed(pending_of(strike))])
        if self.lost_after_s is not None:
            await _sleep_until(noticed_s + ground.clock.clock_s(self.lost_after_s))
            world = world_of(ground)
            for instance in await world.instances():
                if instance.node in strike.targets and instance.state != "terminated":
                    await world.do("power_off", instance.id, {})
        return await self._until_gone(strike)

    async def _until_gone(self, strike: Strike) -> str:
        kube, targets, ground = strike.ground.kube, strike.targets, strike.ground

        async def left() -> list[str]:
            there = {n["metadata"]["name"]: n["metadata"]["uid"] for n in (await kube.list(NODE)).items}
            return [name for name in targets if there.get(name) == strike.before.get(name, there.get(name, ""))]

        async def look() -> str | None:
            return None if await left() else f"{', '.join(targets)}: the Node is gone"

        try:
            return await until(look, ground.within_s(self.notice_s + REACTION_S), ground.patience.poll_s)
        except TookTooLong:
            return (
                f"the notice of {self.notice_s:g} s ended and {REACTION_S:g} s more passed, "
                f"but the Node is still there: {', '.join(await left()) or 'it went just now'}"
            )


def sign_of_interruption(node: Json | None, claim: Json | None) -> str | None:
    """What in the cluster shows that this node is going, None when nothing does."""
    if node is None:
        return "the Node is gone"
    if has_disrupted_taint(node):
        return f"taint {DISRUPTED_TAINT}"
    if node["metadata"].get("deletionTimestamp"):
        return "the Node is being deleted"
    if claim is not None and claim["metadata"].get("deletionTimestamp"):
        return "its NodeClaim is being deleted"
    return None


async def _claims(kube: Kube) -> tuple[Json, ...]:
    try:
        return (await kube.list(NODE_CLAIM)).items
    except NotFound:  # what a server without Karpenter's resources answers
        return ()


async def _instance(kube: Kube, known: Sequence[CloudInstance], node_name: str) -> CloudInstance:
    """The running instance behind a node that is not going already."""
    try:
        node = await kube.get(NODE, node_name)
    except NotFound:
        raise TargetError(f"node {node_name} is not there any more") from None
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


async def _sleep_until(at_s: float) -> None:
    await asyncio.sleep(max(0.0, at_s - asyncio.get_running_loop().time()))
