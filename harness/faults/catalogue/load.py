"""The load itself is the trouble: a crowd, a tenant that floods, very long prompts, clients that hang up.

Such a fault is a part of the plan: its requests stand in the schedule, drawn from the seed like all others, so that two
runs of one plan get the same crowd. Its injection is that they are sent, each named after its fault as the ``user`` of
its body; that they came is read off the gateway's counters.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field, Strict

from harness.errors import TargetError
from harness.faults.fault import Strike, Variant
from harness.faults.fidelity import Fidelity, FidelityMap
from harness.faults.holding import HoldFault, PartFault
from harness.faults.load_process import LOAD, load_of
from harness.faults.port import Ground
from harness.faults.senses import senses_of
from harness.faults.undo import NothingLeft
from harness.spec.model import Count, CountFromZero, Text

BY_OUR_GATEWAY: FidelityMap = dict.fromkeys(("embedded", "controlplane", "node", "kind"), Fidelity.NATIVE)
"""The requests are real everywhere; that they came is seen where the gateway counts them by user."""
QUIET_S = 30.0
"""Scenario seconds without one more of them after which they are over."""
BYTES_PER_TOKEN_MIN = 2.0
"""Of any prompt in a tokenizer's own words: English takes four."""
_REQUESTS, _BYTES = "gateway_user_requests_total", "gateway_user_request_bytes_total"
_BY_USER = r'^{name}\{{user="([^"]*)"\}} ([0-9.e+]+)'
_LEFT = re.compile(r"^gateway_client_left_total\{[^}]*\} ([0-9.e+]+)", re.M)

Rate = Annotated[float, Strict(), Field(gt=0, le=100_000)]


@dataclass(frozen=True, slots=True)
class LoadChange:
    """What the schedule gets while the fault lasts: requests of ``user``, and clients of others that hang up."""

    added_per_s: float = 0.0
    user: str = ""
    priority: int = 0
    prompt_tokens: int | None = None
    """None: as long as those that come anyway."""
    hang_up_ratio: float = 0.0
    hang_up_tokens: int = 0


class LoadFault(HoldFault, PartFault):
    """``hold_s`` is how long its requests come."""

    part: ClassVar[str] = LOAD
    fidelity: ClassVar[FidelityMap] = BY_OUR_GATEWAY
    why_not: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("node", "kind", "kubeconfig"), "not built: what a foreign gateway counts by user is not known"
    )
    undone_by: ClassVar[tuple[str, ...]] = (NothingLeft.kind,)

    @abstractmethod
    def change(self, fault_id: str) -> LoadChange: ...

    def seen_s(self) -> float:
        return self.hold_s

    def healed_s(self) -> float | None:
        return 120.0

    async def remember(self, ground: Ground, targets: Sequence[str]) -> Mapping[str, str]:
        """What the gateway had counted before: clients that left, and by user, for one of that name may be there."""
        text = await senses_of(ground).gateway_text() or ""
        by_user = {
            f"{name} {user}": value
            for name in (_REQUESTS, _BYTES)
            for user, value in re.findall(_BY_USER.format(name=name), text, re.M)
        }
        return {"left": str(_left(text)), **by_user}

    async def inject(self, strike: Strike) -> None:
        """The plan's requests go out by themselves; without a load of the plan there would be none."""
        try:
            load_of(strike.ground).paused()
        except TargetError as error:
            hint = "faults of the load are parts of a plan: they work in `gpu-harness run`, which sends it"
            raise TargetError(
                f"there is no load that {self.name} could be a part of: {error.message}", hint=hint
            ) from None
        strike.will_undo(NothingLeft("its requests are in the plan, and end with it"))

    async def signs(self, strike: Strike) -> dict[str, str]:
        text = await senses_of(strike.ground).gateway_text() or ""
        count, sign = self.seen(strike, text)
        if not count or strike.unchanged_s(self.part, f"{count:g}") > QUIET_S:
            return {}
        return {self.part: f"{self.part}: {sign}"} if sign else {}

    @abstractmethod
    def seen(self, strike: Strike, text: str) -> tuple[float, str]:
        """From the gateway's metrics: how many came so far, and what shows the fault, if anything does."""


class _Crowd(LoadFault):
    """Requests that come on top of the others."""

    added_per_s: Rate

    def user(self, fault_id: str) -> str:
        return fault_id

    def seen_count(self) -> float:
        """Half of those that a clock second brings, and at least one, tell a crowd from a straggler."""
        return max(1.0, self.added_per_s / 2)

    def since(self, strike: Strike, text: str, name: str) -> float:
        """What a counter of its user has grown by since before it."""
        user = self.user(strike.fault_id)
        return _by_user(text, name, user) - float(strike.before.get(f"{name} {user}", 0))

    def seen(self, strike: Strike, text: str) -> tuple[float, str]:
        user = self.user(strike.fault_id)
        count = self.since(strike, text, _REQUESTS)
        if count < self.seen_count():
            return count, ""
        return count, f"{count:.0f} requests of user {user} came to the gateway"

    def expected(self) -> tuple[str, str]:
        return (
            f"at least {self.seen_count():.0f} requests of its own come to the gateway",
            "gateway_user_requests_total of the gateway's /metrics; is the plan's load the one that is sent?",
        )


class FlashCrowd(_Crowd):
    """Blast radius: for ``hold_s``, ``added_per_s`` more requests a clock second come to everybody's replicas."""

    name: ClassVar[str] = "flash_crowd"
    colour: ClassVar[str] = "#006d77"
    variants: ClassVar[tuple[Variant, ...]] = (
        Variant("flash crowd", "somebody with an audience links to it", {"hold_s": 60, "added_per_s": 20.0}),
    )

    def change(self, fault_id: str) -> LoadChange:
        return LoadChange(self.added_per_s, self.user(fault_id))


class TenantFlood(_Crowd):
    """Blast radius: for ``hold_s`` one tenant sends ``added_per_s`` requests a clock second; all share its replicas."""

    name: ClassVar[str] = "tenant_flood"
    colour: ClassVar[str] = "#83c5be"
    variants: ClassVar[tuple[Variant, ...]] = (
        Variant("tenant flood", "a batch job with the key of the chat", {"hold_s": 60, "added_per_s": 20.0}),
        Variant(
            "tenant flood of low priority",
            "the same, and it says that it can wait",
            {"hold_s": 60, "added_per_s": 20.0, "priority": 10},
        ),
    )

    tenant: Text = "flood"
    priority: CountFromZero = 0

    def user(self, fault_id: str) -> str:
        return self.tenant

    def change(self, fault_id: str) -> LoadChange:
        return LoadChange(self.added_per_s, self.tenant, self.priority)


class LongPrompts(_Crowd):
    """Blast radius: for ``hold_s``, ``added_per_s`` requests a clock second with ``prompt_tokens`` each take the
    prefill of the replicas that they come to, and room in their KV cache."""

    name: ClassVar[str] = "long_prompts"
    colour: ClassVar[str] = "#b5838d"
    variants: ClassVar[tuple[Variant, ...]] = (
        Variant("very long prompts", "whole documents", {"hold_s": 60, "added_per_s": 4.0, "prompt_tokens": 6000}),
    )

    prompt_tokens: Count

    def change(self, fault_id: str) -> LoadChange:
        return LoadChange(self.added_per_s, self.user(fault_id), prompt_tokens=self.prompt_tokens)

    def seen(self, strike: Strike, text: str) -> tuple[float, str]:
        count, sign = super().seen(strike, text)
        size = self.since(strike, text, _BYTES) / count if count else 0.0
        long = size >= BYTES_PER_TOKEN_MIN * self.prompt_tokens
        return count, f"{sign}, of {size:.0f} bytes each" if sign and long else ""


class ClientHangUps(LoadFault):
    """Blast radius: for ``hold_s`` a share ``ratio`` of the clients leaves after ``after_tokens`` tokens."""

    name: ClassVar[str] = "client_hang_ups"
    colour: ClassVar[str] = "#6d6875"
    variants: ClassVar[tuple[Variant, ...]] = (
        Variant(
            "clients that hang up", "a page that is closed, an app that is swiped away", {"hold_s": 60, "ratio": 0.7}
        ),
    )

    ratio: Annotated[float, Strict(), Field(gt=0, le=1)] = 0.5
    after_tokens: Count = 5

    def change(self, fault_id: str) -> LoadChange:
        return LoadChange(hang_up_ratio=self.ratio, hang_up_tokens=self.after_tokens)

    def seen(self, strike: Strike, text: str) -> tuple[float, str]:
        count = _left(text) - float(strike.before.get("left", 0))
        return count, f"{count:.0f} clients left before their answers were whole" if count >= 3 else ""

    def expected(self) -> tuple[str, str]:
        return "at least 3 clients leave before their answers are whole", "gateway_client_left_total of its /metrics"


def _by_user(text: str, name: str, user: str) -> float:
    found = dict(re.findall(_BY_USER.format(name=name), text, re.M))
    return float(found.get(user, 0.0))


def _left(text: str) -> float:
    return sum(float(value) for value in _LEFT.findall(text))
