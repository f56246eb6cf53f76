"""Karpenter takes nodes out by its own rules: empty, under-utilised, dearer than need be, drifted, expired."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from random import Random
from typing import ClassVar, Literal

from harness.errors import TargetError
from harness.faults.fault import Strike, Target, Variant
from harness.faults.fidelity import BESIDE_REAL_NODES, FidelityMap
from harness.faults.holding import HoldFault
from harness.faults.permissions import Need
from harness.faults.port import Ground
from harness.faults.scene import Scene
from harness.faults.sight import claims_of, condition, going, nodes_of, pool_of
from harness.faults.undo import ObjectRef, RestoreFields
from harness.kube.port import EVENT, NODE, NODE_POOL, Json, Kube, NotFound
from harness.spec.model import Count, Flag, Seconds, Text

DRIFT_LABEL = "gpu-harness.dev/drift"
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
REACTS_S = 90.0
"""Karpenter looks each 10 s, and 15 s later once more before it acts."""
REASONS = {"empty": {"Empty"}, "underutilised": {"Empty", "Underutilized"}, "drift": {"Drifted"}}
"""What Karpenter says in the condition ``DisruptionReason`` of a NodeClaim that it has chosen (karpenter v1,
pkg/controllers/disruption/types.go). One that has expired is deleted without a word."""
STAYS_S = 45.0
"""So long a node that is to go does not stay."""


class Consolidation(HoldFault):
    """Blast radius: nodes of one NodePool, as many at a time as ``budget`` allows, for ``hold_s``; they are drained by
    evictions, and replaced where their pods find no other place. Expiry keeps to no budget. With ``protect`` one of the
    nodes, or each, is annotated as not to be disrupted first. What was set is taken back afterwards; nodes that drifted
    then drift once more."""

    name: ClassVar[str] = "consolidation"
    colour: ClassVar[str] = "#e7969c"
    kind: ClassVar[Target] = Target.POOLS
    drains: ClassVar[bool] = True
    fidelity: ClassVar[FidelityMap] = BESIDE_REAL_NODES  # Karpenter's rules are ours on all of them
    real_with: ClassVar[str] = "karpenter"
    undone_by: ClassVar[tuple[str, ...]] = (RestoreFields.kind,)
    variants: ClassVar[tuple[Variant, ...]] = (
        Variant(
            "empty",
            "the load has gone, and so do its nodes",
            {"pool": "on-demand", "why": "empty", "hold_s": 200},
            demand_gpus=14,
            demand_leaves=True,
        ),
        Variant("under-utilised", "two half-empty nodes make one", {"pool": "on-demand", "hold_s": 200}),
        Variant(
            "the trap of the default",
            "WhenEmptyOrUnderutilized after 0 s moves serving replicas at any moment",
            {"pool": "on-demand", "budget": "10%", "hold_s": 200},
        ),
        Variant(
            "drift",
            "a new AMI: the NodePool's template has changed",
            {"pool": "spot-a", "why": "drift", "hold_s": 200},
        ),
        Variant(
            "with a budget of one node",
            "one after the other",
            {"pool": "on-demand", "why": "drift", "budget": "1", "hold_s": 200},
        ),
        Variant(
            "two nodes at once",
            "no budget holds the second back",
            {"pool": "on-demand", "why": "drift", "nodes_min": 2, "hold_s": 300},
        ),
        Variant(
            "replace with cheaper",
            "the cheap instance type is in stock again",
            {"pool": "mixed", "cheaper": True, "hold_s": 300},
            demand_gpus=20,
            pools=(
                {
                    "name": "mixed-dear",
                    "capacity_type": "on-demand",
                    "nodepool": "mixed",
                    "nodes": 1,
                    "price_per_hour": 40.0,
                },
                {
                    "name": "mixed-cheap",
                    "capacity_type": "on-demand",
                    "nodepool": "mixed",
                    "nodes": 0,
                    "stock": 2,
                    "price_per_hour": 9.0,
                },
            ),
        ),
        Variant(
            "with do-not-disrupt on one node",
            "it stays, the other goes",
            {"pool": "on-demand", "why": "drift", "protect": "one", "hold_s": 200},
        ),
        Variant(
            "with do-not-disrupt on all nodes",
            "nothing goes, however little it is used",
            {"pool": "on-demand", "why": "drift", "protect": "all", "hold_s": 200},
        ),
        Variant(
            "expiry",
            "nodes live for a minute only, and no budget counts",
            {"pool": "on-demand", "why": "expiry", "expire_after_s": 60, "hold_s": 300},
        ),
    )

    pool: Text
    why: Literal["empty", "underutilised", "drift", "expiry"] = "underutilised"
    budget: Text = "100%"
    nodes_min: Count = 1
    """How many nodes must be on their way out for it to count as seen."""
    expire_after_s: Seconds = 60.0
    cheaper: Flag = False
    """Whether it counts as seen only once a cheaper node of the NodePool was ordered for those that go."""
    protect: Literal["none", "one", "all"] = "none"
    """Which nodes of the pool get ``karpenter.sh/do-not-disrupt`` before."""

    def pick(self, scene: Scene, rng: Random) -> tuple[str, ...]:
        return (self.pool,)

    def radius(self, scene: Scene, targets: Sequence[str]) -> dict[str, int]:
        names = set(self.reach(scene, targets))
        gpus = sum(node.gpus for node in scene.nodes if node.name in names)
        return {"node_pools": 1, "nodes": len(names), "gpus": gpus}

    def reach_at_once(self, nodes: int) -> int:
        """By its budget, a number or a share that Karpenter rounds up; nodes that expire ask none."""
        if self.why == "expiry":
            return nodes
        share = self.budget.removesuffix("%")
        if not share.isdecimal():
            return nodes  # Karpenter will refuse it, or knows more than we do
        return min(nodes, ceil(nodes * int(share) / 100) if share != self.budget else int(share))

    def seen_s(self) -> float:
        return max(self.hold_s, REACTS_S)  # a real Karpenter looks by the clock, whatever the time scale

    def healed_s(self) -> float | None:
        return None  # a drain that has begun goes on

    async def remember(self, ground: Ground, targets: Sequence[str]) -> Mapping[str, str]:
        return {name: pool_of(node) for name, node in (await nodes_of(ground.kube)).items()}

    def needs(self, namespace: str) -> tuple[Need, ...]:
        annotates = (Need(NODE, ("get", "list", "patch")),) if self.protect != "none" else ()
        return (Need(NODE_POOL, ("get", "list", "patch")), *annotates)

    async def inject(self, strike: Strike) -> None:
        kube = strike.ground.kube
        try:
            pool = await kube.get(NODE_POOL, self.pool)
        except NotFound as error:
            raise TargetError(f"no NodePool {self.pool}, or no Karpenter") from error
        ours, spec = self._patch(strike.fault_id), pool["spec"]
        earlier: Json = {"disruption": spec.get("disruption")}
        if "template" in ours:
            labels = ((spec["template"].get("metadata") or {}).get("labels")) or {}
            before: Json = {"metadata": {"labels": {DRIFT_LABEL: labels.get(DRIFT_LABEL)}}}
            if self.why == "expiry":
                before = {"spec": {"expireAfter": spec["template"]["spec"].get("expireAfter")}}
            earlier["template"] = before
        for name in self._protected(strike.before):
            ours_on_node: Json = {"metadata": {"annotations": {DO_NOT_DISRUPT: "true"}}}
            earlier_on_node: Json = {"metadata": {"annotations": {DO_NOT_DISRUPT: None}}}
            node = ObjectRef(NODE.api_version, NODE.kind, name)
            strike.will_undo(RestoreFields(node, ours_on_node, earlier_on_node))
            await kube.patch(NODE, name, ours_on_node)
        ref = ObjectRef(NODE_POOL.api_version, NODE_POOL.kind, self.pool)
        strike.will_undo(RestoreFields(ref, {"spec": ours}, {"spec": earlier}))
        await kube.patch(NODE_POOL, self.pool, {"spec": ours})

    def _protected(self, before: Mapping[str, str]) -> list[str]:
        """By name, so that it is the same node for the same cluster."""
        own = sorted(name for name, pool in before.items() if pool == self.pool)
        return own[: {"none": 0, "one": 1, "all": len(own)}[self.protect]]

    def _patch(self, fault_id: str) -> Json:
        policy = "WhenEmpty" if self.why == "empty" else "WhenEmptyOrUnderutilized"
        budgets = [{"nodes": self.budget}]
        if self.why in ("empty", "underutilised"):
            return {"disruption": {"consolidationPolicy": policy, "consolidateAfter": "0s", "budgets": budgets}}
        if self.why == "drift":
            template: Json = {"metadata": {"labels": {DRIFT_LABEL: fault_id}}}
        else:
            template = {"spec": {"expireAfter": f"{self.expire_after_s:g}s"}}
        return {"disruption": {"budgets": budgets}, "template": template}

    def cannot_on(self, target: str) -> str | None:
        if self.budget.removesuffix("%").strip("0") == "" and self.why != "expiry" and self.protect == "none":
            return f"a budget of {self.budget} lets no node go, so it would do nothing"
        return super().cannot_on(target)

    async def signs(self, strike: Strike) -> dict[str, str]:
        """By pool: how many of the nodes that were there are on their way out, or gone, and were chosen for this."""
        nodes, claims = await nodes_of(strike.ground.kube), await claims_of(strike.ground.kube)
        of = {str((claim.get("status") or {}).get("nodeName") or name): claim for name, claim in claims.items()}
        if self.protect == "all":
            return self._held_back(strike, nodes, of)
        new = [node for node, claim in of.items() if node not in strike.before and pool_of(claim) == self.pool]
        if self.cheaper and not new:
            return {}
        gone = [name for name in strike.before if name not in nodes and name not in of]
        told = await _told_of(strike.ground.kube, gone) if self.why != "expiry" and gone else {}
        leaving: dict[str, list[str]] = {}
        for name, pool in strike.before.items():
            sign = going(nodes[name], of.get(name)) if name in nodes else "the Node is gone"
            if self._chosen(strike, name, of.get(name), told.get(name, "")) and sign:
                leaving.setdefault(pool, []).append(f"{name}: {sign}")
        instead = f"; {', '.join(new)} was ordered instead" if self.cheaper else ""
        return {
            pool: f"{pool}: {', '.join(said)}{instead}" for pool, said in leaving.items() if len(said) >= self.nodes_min
        }

    def _chosen(self, strike: Strike, name: str, claim: Json | None, told: str) -> bool:
        """Whether the node goes for the reason of this fault, and not because an instance was lost or its Node deleted.
        What was said once is kept, since the claim may be gone when its node is looked for. An empty node is gone
        before anybody looks: then the event tells."""
        if self.why == "expiry":
            return True
        said = condition(claim, "DisruptionReason") if claim is not None else {}
        reason = str(said.get("reason", "")) if said.get("status") == "True" else told
        if reason in REASONS[self.why]:
            strike.unchanged_s(f"chosen {name}", reason)
        return f"chosen {name}" in strike.notes

    def _held_back(self, strike: Strike, nodes: Mapping[str, Json], claims: Mapping[str, Json]) -> dict[str, str]:
        """Karpenter has found every one of them fit to go, and for longer than it takes to act none of them goes.
        ``claims`` by the name of their node."""
        own = self._protected(strike.before)
        found = "Drifted" if self.why == "drift" else "Consolidatable"
        marked = [n for n in own if n in claims and condition(claims[n], found).get("status") == "True"]
        stay = [n for n in own if n in nodes and going(nodes[n], claims.get(n)) is None]
        stay_s = strike.unchanged_s("stay", ",".join(stay) if marked == own == stay else "")
        if not own or marked != own or stay != own or stay_s < STAYS_S:
            return {}
        return {self.pool: f"{self.pool}: {', '.join(own)} are {found} and stay for {stay_s:.0f} s: {DO_NOT_DISRUPT}"}

    def expected(self) -> tuple[str, str]:
        if self.protect == "all":
            return (
                "all are found fit to go and stay",
                "kubectl describe nodeclaims: conditions Drifted and Consolidatable",
            )
        return (
            f"{self.nodes_min} of the NodePool's nodes get karpenter.sh/disrupted, are being deleted or gone",
            "kubectl describe nodepool, events DisruptionBlocked and Unconsolidatable; do budgets or pods forbid it?",
        )


async def _told_of(kube: Kube, names: Sequence[str]) -> dict[str, str]:
    """Karpenter's reason by Node, from its events ``DisruptionTerminating`` ("Disrupting Node: Empty")."""
    told: dict[str, str] = {}
    for event in (await kube.list(EVENT)).items:
        about = (event.get("involvedObject") or {}).get("name")
        if event.get("reason") == "DisruptionTerminating" and about in names:
            told[str(about)] = str(event.get("message", "")).rpartition(": ")[2]
    return told
