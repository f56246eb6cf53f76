"""The control plane stumbles for one of its clients: errors, delays, cut watches, a process that stands still."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import ClassVar, Literal

from harness.faults.fault import Fault, Strike, Target, Variant
from harness.faults.fidelity import ON_FAKE_CONTROL_PLANE, FidelityMap
from harness.faults.holding import HoldFault, turn
from harness.faults.permissions import Need
from harness.faults.port import Ground
from harness.faults.scene import Scene
from harness.faults.sight import pods_of, renew_times
from harness.faults.undo import NothingLeft, ResetKnob
from harness.faults.undoing import world_of
from harness.kube.port import LEASE, REPLICA_SET
from harness.spec.model import Flag, Ratio, SecondsFromZero

RENEWAL_S = 7.0
"""Scenario seconds without a renewal of its leader's lease after which a client is in trouble: it renews each 2."""
LEASES = {
    "kube-scheduler": "kube-scheduler",
    "kube-controller-manager": "kube-controller-manager",
    "karpenter": "karpenter-leader-election",
}
Client = Literal["kube-scheduler", "kube-controller-manager", "karpenter"]
_WHY_NOT = {"controlplane": "its components are real processes, and nothing stands between them and the API server"}


class ClientFault(Fault):
    """Known by its client; it shows on the client's leader election, which goes through the same API."""

    kind: ClassVar[Target] = Target.PARTS
    fidelity: ClassVar[FidelityMap] = ON_FAKE_CONTROL_PLANE
    why_not: ClassVar[Mapping[str, str]] = _WHY_NOT

    client: Client

    def pick(self, scene: Scene, rng: Random) -> tuple[str, ...]:
        return (self.client,)

    def seen_s(self) -> float:
        return 60.0

    def needs(self, namespace: str) -> tuple[Need, ...]:
        return (Need(LEASE, ("list",), namespace="kube-system"),)

    async def signs(self, strike: Strike) -> dict[str, str]:
        renewed = await renew_times(strike.ground.kube, "kube-system")
        found: dict[str, str] = {}
        for client, lease in LEASES.items():
            late_s = strike.unchanged_s(client, renewed.get(lease, ""))
            if lease in renewed and late_s > RENEWAL_S:
                found[client] = f"{client}: its leader election was not renewed for {late_s:.0f} s"
        return found

    def expected(self) -> tuple[str, str]:
        return (
            f"no renewal of its leader election for {RENEWAL_S:g} s",
            "kubectl get lease -n kube-system; does it run with leader election?",
        )


class ApiErrors(ClientFault, HoldFault):
    """Blast radius: a share of one client's calls for ``hold_s``; nobody else's, and never the recorder's."""

    name: ClassVar[str] = "api_errors"
    colour: ClassVar[str] = "#7b4173"
    undone_by: ClassVar[tuple[str, ...]] = (ResetKnob.kind,)
    variants: ClassVar[tuple[Variant, ...]] = (
        Variant("429", "priority and fairness has no seat", {"client": "karpenter", "hold_s": 60, "how": "429"}),
        Variant("500", "etcd has no leader", {"client": "kube-controller-manager", "hold_s": 60, "how": "500"}),
        Variant("timeouts", "a broken load balancer", {"client": "kube-scheduler", "hold_s": 60, "how": "timeout"}),
        Variant("slow", "a disk that is full", {"client": "kube-scheduler", "hold_s": 60, "how": "slow"}),
    )

    how: Literal["429", "500", "timeout", "slow"]
    ratio: Ratio = 1.0
    delay_s: SecondsFromZero = 10.0

    async def inject(self, strike: Strike) -> None:
        errors = {"how": self.how, "ratio": self.ratio, "delay_s": self.delay_s}
        await turn(strike, "api.errors", self.client, errors)


class PartStopped(ClientFault, HoldFault):
    """Blast radius: one controller process stands still for ``hold_s``: nothing that it does is done. With
    ``leader_lost`` it has also forgotten what it knew when it goes on, as another leader would."""

    name: ClassVar[str] = "part_stopped"
    colour: ClassVar[str] = "#843c39"
    undone_by: ClassVar[tuple[str, ...]] = (ResetKnob.kind,)
    variants: ClassVar[tuple[Variant, ...]] = (
        Variant("scheduler stopped", "evicted, and nobody schedules it", {"client": "kube-scheduler", "hold_s": 60}),
        Variant("autoscaler stopped", "Karpenter on the node it removed", {"client": "karpenter", "hold_s": 60}),
        Variant(
            "leader lost",
            "the controller manager's lease runs out, another one starts from nothing",
            {"client": "kube-controller-manager", "hold_s": 30, "leader_lost": True},
        ),
    )

    leader_lost: Flag = False

    async def inject(self, strike: Strike) -> None:
        await turn(strike, "api.stopped", self.client, True)

    async def while_held(self, strike: Strike, until_s: float) -> None:
        await super().while_held(strike, until_s)
        if self.leader_lost:
            await world_of(strike.ground).do("cut_watches", self.client, {"gone": True})


class WatchCut(Fault):
    """Blast radius: all watches of one client end at once; with ``gone`` it must list anew. Nothing is lost, if it
    knows its trade."""

    name: ClassVar[str] = "watch_cut"
    colour: ClassVar[str] = "#637939"
    kind: ClassVar[Target] = Target.PARTS
    fidelity: ClassVar[FidelityMap] = ON_FAKE_CONTROL_PLANE
    why_not: ClassVar[Mapping[str, str]] = _WHY_NOT
    undone_by: ClassVar[tuple[str, ...]] = (NothingLeft.kind,)
    variants: ClassVar[tuple[Variant, ...]] = (
        Variant("cut", "a load balancer with an idle limit", {"client": "kube-scheduler"}),
        Variant("410", "the server has forgotten the past", {"client": "kube-controller-manager", "gone": True}),
    )

    client: Client
    gone: Flag = False

    def pick(self, scene: Scene, rng: Random) -> tuple[str, ...]:
        return (self.client,)

    def seen_s(self) -> float:
        return 30.0

    def healed_s(self) -> float | None:
        return None

    async def remember(self, ground: Ground, targets: Sequence[str]) -> Mapping[str, str]:
        return {c: str(n) for c, n in (await world_of(ground).watches_begun()).items()}

    async def inject(self, strike: Strike) -> None:
        strike.will_undo(NothingLeft("a watch that was cut is its client's to begin anew"))
        await world_of(strike.ground).do("cut_watches", self.client, {"gone": self.gone})

    async def signs(self, strike: Strike) -> dict[str, str]:
        """By the server's own count of watch requests, as its access log or its metrics would show them."""
        begun = await world_of(strike.ground).watches_begun()
        return {
            client: f"{client}: began {now - int(before)} watches anew"
            for client, before in strike.before.items()
            if (now := begun.get(client, 0)) > int(before)
        }

    def expected(self) -> tuple[str, str]:
        return "the client begins its watches anew", 'apiserver_request_total{verb="WATCH"}'


class WebhookDown(HoldFault):
    """Blast radius: no controller can create a pod for ``hold_s`` (failurePolicy: Fail); pods that run go on."""

    name: ClassVar[str] = "webhook_down"
    colour: ClassVar[str] = "#8c6d31"
    kind: ClassVar[Target] = Target.PARTS
    fidelity: ClassVar[FidelityMap] = ON_FAKE_CONTROL_PLANE
    why_not: ClassVar[Mapping[str, str]] = {"controlplane": "no webhook of ours is registered there"}
    undone_by: ClassVar[tuple[str, ...]] = (ResetKnob.kind,)
    variants: ClassVar[tuple[Variant, ...]] = (
        Variant("admission webhook down", "its own pods were on the node that went", {"hold_s": 90}, demand_gpus=2),
    )

    def pick(self, scene: Scene, rng: Random) -> tuple[str, ...]:
        return ("api",)

    def seen_s(self) -> float:
        return self.hold_s  # it shows when the next pod is to be made

    async def inject(self, strike: Strike) -> None:
        await turn(strike, "api.webhook_down", "api", True)

    async def signs(self, strike: Strike) -> dict[str, str]:
        """A ReplicaSet that has fewer pods than it wants, and says why."""
        pods = await pods_of(strike.ground)
        for rs in (await strike.ground.kube.list(REPLICA_SET, strike.ground.namespace)).items:
            name, uid = rs["metadata"]["name"], rs["metadata"]["uid"]
            wanted = int((rs.get("spec") or {}).get("replicas", 0))
            have = sum(
                any(o.get("uid") == uid for o in pod["metadata"].get("ownerReferences") or ()) for pod in pods.values()
            )
            short_s = strike.unchanged_s(name, "short" if have < wanted else "whole")
            if have < wanted and short_s > 10.0:
                return {"api": f"api: ReplicaSet {name} has {have} of {wanted} pods for {short_s:.0f} s"}
        return {}

    def expected(self) -> tuple[str, str]:
        return "a ReplicaSet has fewer pods than it wants for 10 s", "was a pod to be made at all? kubectl get rs"
