"""The cloud gives no instance, or takes back what it gave: quota, stock, errors, throttling, half a group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Annotated, ClassVar, Literal

from pydantic import Field, Strict

from harness.errors import BadInput
from harness.faults.fault import Strike, Variant
from harness.faults.fidelity import BESIDE_REAL_NODES, FidelityMap
from harness.faults.holding import PoolHoldFault, turn
from harness.faults.pick import NODE_POOL_LABEL
from harness.faults.port import Ground
from harness.faults.scene import Scene
from harness.faults.sight import claims_of, cloud_pool_of, condition, nodes_of
from harness.kube.port import EVENT, Json
from harness.spec.model import Count, CountFromZero, SecondsFromZero, Text

_OD = {"pool": "on-demand", "hold_s": 150}
SHORT = "InsufficientCapacityError"
_CAUSES = {
    "quota": "VcpuLimitExceeded",
    "zone": "InsufficientInstanceCapacity",
    "error": "InvalidAMIID.NotFound",
    "throttled": "RequestLimitExceeded",
}
"""What a cloud says of each: a refusal that gives another cause is none of this fault's."""
_PRODUCT = "nvidia.com/gpu.product"
REGISTERS_S = 60.0
"""Scenario seconds from its launch in which a healthy instance has registered (35 with the presets)."""


class CapacityRefused(PoolHoldFault):
    """Blast radius: the pool gives no further instance for ``hold_s``; what it gave before stays."""

    name: ClassVar[str] = "capacity_refused"
    colour: ClassVar[str] = "#2ca02c"
    fidelity: ClassVar[FidelityMap] = BESIDE_REAL_NODES
    variants: ClassVar[tuple[Variant, ...]] = (
        Variant("quota reached", "VcpuLimitExceeded", {**_OD, "why": "quota"}, demand_gpus=14),
        Variant("zone out of stock", "InsufficientInstanceCapacity", {**_OD, "why": "zone"}, demand_gpus=14),
        Variant("launch error", "an AMI that is gone", {**_OD, "why": "error"}, demand_gpus=14),
        Variant("API throttling", "RequestLimitExceeded on every call", {**_OD, "why": "throttled"}, demand_gpus=14),
    )

    why: Literal["quota", "zone", "error", "throttled"] = "zone"
    zone: Text = "zone-a"

    def healed_s(self) -> float | None:
        return None  # it shows on the next order, and none may come

    async def inject(self, strike: Strike) -> None:
        match self.why:
            case "quota":
                await turn(strike, "cloud.quota", self.pool, 0)
            case "zone":
                await turn(strike, "cloud.zone_out", self.zone, True)
            case "error":
                await turn(strike, "cloud.launch_error", self.pool, "InvalidAMIID.NotFound: the image does not exist")
            case "throttled":
                await turn(strike, "cloud.throttled", "cloud", True)

    async def remember(self, ground: Ground, targets: Sequence[str]) -> Mapping[str, str]:
        """The claims and the events that were there: only later ones count."""
        claims = {name: claim["metadata"]["uid"] for name, claim in (await claims_of(ground.kube)).items()}
        return claims | {event_key(e): "" for e in (await ground.kube.list(EVENT)).items if e.get("reason") == SHORT}

    async def signs(self, strike: Strike) -> dict[str, str]:
        """New claims that did not become instances. One short of capacity is deleted within moments, so Karpenter's
        Events count as well."""
        for name, claim in (await claims_of(strike.ground.kube)).items():
            launched = condition(claim, "Launched")
            refused = launched.get("status") == "False" or launched.get("reason") == "LaunchFailed"
            ours = self._may_be_ours(str(launched.get("message", "")))
            if name not in strike.before and refused and ours and cloud_pool_of(claim) == self.pool:
                return {self.pool: f"{self.pool}: {name} was not launched: {launched.get('message', '')}"}
        for event in (await strike.ground.kube.list(EVENT)).items:
            about = event.get("involvedObject") or event.get("regarding") or {}
            name = str(about.get("name", ""))
            said = str(event.get("message") or event.get("note") or "")
            new = event.get("reason") == SHORT and name not in strike.before and event_key(event) not in strike.before
            of_pool = about.get("kind") == "NodeClaim" and name.startswith(f"{self.pool}-")
            if new and of_pool and self._may_be_ours(said):
                return {self.pool: f"{self.pool}: {said}"}
        return {}

    def _may_be_ours(self, said: str) -> bool:
        """Unless it gives another cause, or another zone."""
        if not any(cause in said for cause in _CAUSES.values()):
            return True
        where = self.zone if self.why == "zone" and "zone " in said else ""
        return _CAUSES[self.why] in said and where in said

    def expected(self) -> tuple[str, str]:
        return (
            "a new NodeClaim of the pool is not launched",
            "was a node asked for at all? kubectl get nodeclaims, kubectl get events --field-selector "
            "reason=InsufficientCapacityError",
        )


def event_key(event: Json) -> str:
    return f"event/{event['metadata']['uid']}"


class GroupHalfDelivered(PoolHoldFault):
    """Blast radius: of the next ``of`` instances of the pool ``deliver`` come, the others are refused, and the
    cloud takes all of them back ``release_s`` after the first refusal."""

    name: ClassVar[str] = "group_half_delivered"
    colour: ClassVar[str] = "#ff9896"
    fidelity: ClassVar[FidelityMap] = BESIDE_REAL_NODES
    variants: ClassVar[tuple[Variant, ...]] = (
        Variant(
            "half delivered, then released",
            "9 of 16, here 1 of 4: an all-or-nothing order that the cloud gives up",
            {"pool": "on-demand", "hold_s": 240, "of": 4, "deliver": 1, "release_s": 60},
            demand_gpus=22,
        ),
    )

    of: Count = 16
    deliver: CountFromZero = 9
    release_s: SecondsFromZero = 60.0

    def healed_s(self) -> float | None:
        return None

    async def inject(self, strike: Strike) -> None:
        group = {"of": self.of, "deliver": self.deliver, "release_after_s": self.release_s}
        await turn(strike, "cloud.half_group", self.pool, group)

    async def remember(self, ground: Ground, targets: Sequence[str]) -> Mapping[str, str]:
        return {name: claim["metadata"]["uid"] for name, claim in (await claims_of(ground.kube)).items()}

    async def signs(self, strike: Strike) -> dict[str, str]:
        """New claims that were launched and are gone again, with or without their Node."""
        claims = await claims_of(strike.ground.kube)
        for name, claim in claims.items():
            if name in strike.before or cloud_pool_of(claim) != self.pool:
                continue
            if condition(claim, "Launched").get("status") == "True":
                strike.unchanged_s(name, "launched")
        gone = [n for n in strike.notes if n not in claims or claims[n]["metadata"].get("deletionTimestamp")]
        if not gone or len(gone) < self.deliver:
            return {}
        return {self.pool: f"{self.pool}: {', '.join(sorted(gone))} came and went again"}

    def expected(self) -> tuple[str, str]:
        return "the delivered instances come and go again", "were that many nodes asked for? kubectl get nodeclaims"


class InstanceTrouble(PoolHoldFault):
    """Blast radius: instances of the pool that are launched within ``hold_s`` never register, boot ``factor`` times as
    slowly, or have another GPU than was asked for. Those stay so after it is healed."""

    name: ClassVar[str] = "instance_trouble"
    colour: ClassVar[str] = "#c5b0d5"
    fidelity: ClassVar[FidelityMap] = BESIDE_REAL_NODES
    variants: ClassVar[tuple[Variant, ...]] = (
        Variant(
            "instance that never registers",
            "bad user data: it runs, it costs, and no Node appears",
            {"pool": "on-demand", "hold_s": 240, "how": "never_registers"},
            demand_gpus=14,
        ),
        Variant(
            "slow boot", "three times as long", {"pool": "on-demand", "hold_s": 240, "how": "slow_boot"}, demand_gpus=14
        ),
        Variant(
            "wrong GPU model delivered",
            "the pool's requirements are too wide: A10G where H100 was meant",
            {"pool": "on-demand", "hold_s": 240, "how": "wrong_gpu"},
            demand_gpus=14,
        ),
    )

    how: Literal["never_registers", "slow_boot", "wrong_gpu"]
    factor: Annotated[float, Strict(), Field(gt=1)] = 3.0
    gpu_product: Text = "NVIDIA-A10G"

    def pick(self, scene: Scene, rng: Random) -> tuple[str, ...]:
        picked = super().pick(scene, rng)
        own = [n for n in scene.nodes if n.labels.get(NODE_POOL_LABEL) == self.pool]
        if self.how == "wrong_gpu" and any(n.labels.get(_PRODUCT) == self.gpu_product for n in own):
            raise BadInput(
                f"pool {self.pool} has {self.gpu_product} already, so a node with it would prove nothing",
                hint="write another gpu_product",
            )
        return picked

    def healed_s(self) -> float | None:
        return None

    async def inject(self, strike: Strike) -> None:
        match self.how:
            case "never_registers":
                await turn(strike, "cloud.never_registers", self.pool, True)
            case "slow_boot":
                await turn(strike, "cloud.boot_factor", self.pool, self.factor)
            case "wrong_gpu":
                await turn(strike, "cloud.gpu_product", self.pool, self.gpu_product)

    async def remember(self, ground: Ground, targets: Sequence[str]) -> Mapping[str, str]:
        return {name: claim["metadata"]["uid"] for name, claim in (await claims_of(ground.kube)).items()}

    async def signs(self, strike: Strike) -> dict[str, str]:
        kube = strike.ground.kube
        claims, nodes = await claims_of(kube), await nodes_of(kube)
        for name, claim in claims.items():
            if name in strike.before or cloud_pool_of(claim) != self.pool:
                continue
            node = nodes.get(name)
            if self.how == "wrong_gpu":
                product = ((node or {}).get("metadata") or {}).get("labels", {}).get(_PRODUCT)
                if product == self.gpu_product:
                    return {self.pool: f"{self.pool}: {name} has {product}"}
                continue
            launched = condition(claim, "Launched").get("status") == "True"
            waits_s = strike.unchanged_s(name, "no node" if launched and node is None else "other")
            limit_s = REGISTERS_S * (2.5 if self.how == "never_registers" else 1.0)
            if launched and node is None and waits_s > limit_s:
                return {self.pool: f"{self.pool}: {name} is launched for {waits_s:.0f} s, and no Node has registered"}
        return {}

    def expected(self) -> tuple[str, str]:
        what = {
            "never_registers": "an instance is launched, and no Node registers",
            "slow_boot": f"an instance is launched for {REGISTERS_S:g} s, and no Node has registered",
            "wrong_gpu": f"a new Node says nvidia.com/gpu.product {self.gpu_product}",
        }[self.how]
        return what, "was a node asked for at all? kubectl get nodeclaims"
