"""The network between clients, gateway and pods is slow, loses or resets; the gateway restarts, or hears late."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Annotated, ClassVar, Literal

from pydantic import Field, Strict, model_validator

from harness.faults.fault import Strike, Target, Variant
from harness.faults.fidelity import BESIDE_REAL_NODES, FidelityMap
from harness.faults.holding import HoldFault, PartFault, PartHoldFault, turn
from harness.faults.scene import Scene
from harness.faults.seen_traffic import ask_many, late_endpoints
from harness.faults.undo import NothingLeft, ResetKnob
from harness.faults.undoing import world_of
from harness.spec.model import Ratio, Seconds, mistake


class LinkTrouble(HoldFault):
    """Blast radius: all requests that pass the link for ``hold_s``. Latency is clock time, never scaled."""

    name: ClassVar[str] = "link_trouble"
    colour: ClassVar[str] = "#5254a3"
    fidelity: ClassVar[FidelityMap] = BESIDE_REAL_NODES
    kind: ClassVar[Target] = Target.PARTS
    undone_by: ClassVar[tuple[str, ...]] = (ResetKnob.kind,)
    variants: ClassVar[tuple[Variant, ...]] = (
        Variant(
            "latency to clients",
            "a detour over another region",
            {"link": "clients", "hold_s": 60, "latency_ms": 200},
        ),
        Variant("latency to pods", "a congested fabric", {"link": "pods", "hold_s": 60, "latency_ms": 200}),
        Variant("loss to clients", "a dying link", {"link": "clients", "hold_s": 60, "loss_ratio": 0.3}),
        Variant("loss to pods", "a bad cable in the rack", {"link": "pods", "hold_s": 60, "loss_ratio": 0.3}),
        Variant("resets to clients", "a firewall that forgets", {"link": "clients", "hold_s": 60, "reset_ratio": 0.5}),
        Variant("resets to pods", "a sidecar that restarts", {"link": "pods", "hold_s": 60, "reset_ratio": 0.5}),
    )

    link: Literal["clients", "pods"]
    latency_ms: Annotated[float, Strict(), Field(ge=0, le=60_000)] = 0.0
    loss_ratio: Ratio = 0.0
    reset_ratio: Ratio = 0.0

    @model_validator(mode="after")
    def _does_something(self) -> LinkTrouble:
        if not (self.latency_ms or self.loss_ratio or self.reset_ratio):
            raise mistake("is given nothing to do", hint="write latency_ms, loss_ratio or reset_ratio, above 0")
        return self

    def pick(self, scene: Scene, rng: Random) -> tuple[str, ...]:
        return (self.link,)

    def seen_s(self) -> float:
        return 60.0

    async def inject(self, strike: Strike) -> None:
        quality = {"latency_ms": self.latency_ms, "loss_ratio": self.loss_ratio, "reset_ratio": self.reset_ratio}
        await turn(strike, "net.link", self.link, quality)

    async def signs(self, strike: Strike) -> dict[str, str]:
        """Requests of our own: how many come back, and how fast. The gateway's own answers tell the links apart: of
        trouble towards pods a client hears as a 502."""
        answers = await ask_many(strike)
        lost = sum(a.error == "no answer" for a in answers)
        broken = sum(a.error == "reset" or a.status == 502 for a in answers)
        fastest_ms = min((a.took_s * 1000 for a in answers if a.status), default=0.0)
        signs: list[str] = []
        if self.latency_ms and fastest_ms >= self.latency_ms * 0.8:
            signs.append(f"the fastest of {len(answers)} requests took {fastest_ms:.0f} ms")
        if self.loss_ratio and lost:
            signs.append(f"{lost} of {len(answers)} requests had no answer")
        if self.reset_ratio and broken:
            signs.append(f"{broken} of {len(answers)} requests broke off")
        wanted = sum(bool(v) for v in (self.latency_ms, self.loss_ratio, self.reset_ratio))
        return {self.link: f"{self.link}: {', '.join(signs)}"} if signs and len(signs) == wanted else {}

    def expected(self) -> tuple[str, str]:
        parts = [
            f"every request takes {self.latency_ms * 0.8:.0f} ms" if self.latency_ms else "",
            "some requests have no answer" if self.loss_ratio else "",
            "some requests break off" if self.reset_ratio else "",
        ]
        return ", and ".join(part for part in parts if part), "curl the service"


class GatewayRestart(PartFault):
    """Blast radius: every stream that is open breaks, and for ``down_s`` no client is served."""

    name: ClassVar[str] = "gateway_restart"
    colour: ClassVar[str] = "#9c9ede"
    fidelity: ClassVar[FidelityMap] = BESIDE_REAL_NODES
    part: ClassVar[str] = "gateway"
    undone_by: ClassVar[tuple[str, ...]] = (NothingLeft.kind,)
    variants: ClassVar[tuple[Variant, ...]] = (
        Variant("restart", "an update of the router with one replica", {"down_s": 60}),
    )

    down_s: Seconds

    @property
    def ends_s(self) -> float:
        return self.after_s + self.down_s

    def longest_s(self) -> float:
        return self.down_s + 120.0

    async def inject(self, strike: Strike) -> None:
        strike.will_undo(NothingLeft("the gateway comes back by itself; streams that broke stay broken"))
        await world_of(strike.ground).do("restart_gateway", "gateway", {"down_s": self.down_s})

    async def outlast(self, strike: Strike, since_s: float) -> str:
        until_s = since_s + strike.ground.clock.clock_s(self.down_s)
        await asyncio.sleep(max(0.0, until_s - asyncio.get_running_loop().time()))
        for entry in strike.ground.undo.replay().pending:
            if entry.fault_id == strike.fault_id:
                strike.ground.undo.undone(entry.seq, "it was to come back by now")
        return f"down for {self.down_s:g} s"

    async def signs(self, strike: Strike) -> dict[str, str]:
        """One that is gone refuses or cuts off at once. Silence is of what lies before it or behind it."""
        answers = await ask_many(strike)
        if any(a.status or a.error == "no answer" for a in answers):
            return {}
        return {self.part: f"{self.part}: none of {len(answers)} requests was served ({answers[0].error})"}

    def expected(self) -> tuple[str, str]:
        return "no request is served", "curl the service; is another gateway in front?"


class EndpointsLate(PartHoldFault):
    """Blast radius: for ``hold_s`` the gateway learns of pods that come and go ``late_s`` too late, and sends to pods
    that are gone."""

    name: ClassVar[str] = "endpoints_late"
    colour: ClassVar[str] = "#6b6ecf"
    fidelity: ClassVar[FidelityMap] = BESIDE_REAL_NODES
    part: ClassVar[str] = "gateway"
    variants: ClassVar[tuple[Variant, ...]] = (
        Variant("30 s late", "a router that polls", {"hold_s": 180, "late_s": 30}, demand_gpus=2),
    )

    late_s: Seconds

    def seen_s(self) -> float:
        return self.hold_s  # it shows when the next endpoint changes

    def healed_s(self) -> float | None:
        return None  # it shows on the next change of an endpoint, and none may come

    async def inject(self, strike: Strike) -> None:
        await turn(strike, "gateway.endpoints_late_s", "gateway", self.late_s)

    async def signs(self, strike: Strike) -> dict[str, str]:
        return await late_endpoints(strike, self.part)

    def expected(self) -> tuple[str, str]:
        return (
            "the gateway's list of routable pods differs from the EndpointSlices for more than 5 s",
            "did an endpoint change at all? kubectl get endpointslices; gateway_pod_routable of /metrics",
        )
