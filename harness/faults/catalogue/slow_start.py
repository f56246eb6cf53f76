"""New pods are slow to start: the image, the registry, the model's download, the warm-up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field, Strict

from harness.faults.fault import Strike, Variant
from harness.faults.holding import PartHoldFault, turn
from harness.faults.port import Ground
from harness.faults.sight import container_states, is_ready, pods_of, waiting_reasons
from harness.kube.port import Json

TOO_MANY = "429 Too Many Requests - toomanyrequests: You have reached your unauthenticated pull rate limit"
PULL_S, LOAD_S = 45.0, 40.0
"""Scenario seconds after which a pull, or a load of the model, is slower than the presets' healthy ones (20, 15)."""


class SlowStart(PartHoldFault):
    """Blast radius: every pod that starts within ``hold_s``, on any node. Pods that run go on."""

    name: ClassVar[str] = "slow_start"
    colour: ClassVar[str] = "#aec7e8"
    part: ClassVar[str] = "pods that start"
    variants: ClassVar[tuple[Variant, ...]] = (
        Variant("slow image pull", "9 GB through a busy registry", {"hold_s": 200, "how": "image"}, demand_gpus=14),
        Variant(
            "rate-limited image pull",
            "the registry's anonymous quota is used up",
            {"hold_s": 120, "how": "rate_limit"},
            demand_gpus=14,
        ),
        Variant(
            "slow model download",
            "weights from a bucket in another region",
            {"hold_s": 200, "how": "model", "factor": 10},
            demand_gpus=6,
        ),
        Variant(
            "slow warm-up",
            "CUDA graphs are captured anew after a driver update",
            {"hold_s": 200, "how": "warm_up", "factor": 6},
            demand_gpus=6,
        ),
    )

    how: Literal["image", "rate_limit", "model", "warm_up"]
    factor: Annotated[float, Strict(), Field(gt=1)] = 5.0

    def seen_s(self) -> float:
        return self.hold_s

    def healed_s(self) -> float:
        return 400.0  # what began slowly goes on slowly

    async def remember(self, ground: Ground, targets: Sequence[str]) -> Mapping[str, str]:
        return {name: pod["metadata"]["uid"] for name, pod in (await pods_of(ground)).items()}

    async def inject(self, strike: Strike) -> None:
        match self.how:
            case "image":
                await turn(strike, "registry.slow_by", "registry", self.factor)
            case "rate_limit":
                await turn(strike, "registry.fail", "*", TOO_MANY)
            case "model" | "warm_up":
                await turn(strike, "model.load_factor", "model", self.factor)

    async def signs(self, strike: Strike) -> dict[str, str]:
        for name, pod in (await pods_of(strike.ground)).items():
            if strike.before.get(name) != pod["metadata"]["uid"] and (sign := self._sign(strike, name, pod)):
                return {self.part: f"{name}: {sign}"}
        return {}

    def _sign(self, strike: Strike, name: str, pod: Json) -> str | None:
        if self.how == "rate_limit":
            stuck = waiting_reasons(pod) & {"ErrImagePull", "ImagePullBackOff"}
            return f"waits in {', '.join(sorted(stuck))}" if stuck else None
        states = list(container_states(pod))
        started = any((c.get("state") or {}).get("running") for c in states)
        admitted = "startTime" in (pod.get("status") or {})
        if self.how == "image":
            waits_s = strike.unchanged_s(name, "started" if started or not admitted else "pulling")
            return f"pulls for {waits_s:.0f} s" if admitted and not started and waits_s > PULL_S else None
        loads_s = strike.unchanged_s(name, "loading" if started and not is_ready(pod) else "other")
        return (
            f"runs for {loads_s:.0f} s and is not Ready" if started and not is_ready(pod) and loads_s > LOAD_S else None
        )

    def expected(self) -> tuple[str, str]:
        what = {
            "image": f"a new pod pulls its image for more than {PULL_S:g} s",
            "rate_limit": "a new pod waits in ErrImagePull",
            "model": f"a new pod runs for more than {LOAD_S:g} s without being Ready",
            "warm_up": f"a new pod runs for more than {LOAD_S:g} s without being Ready",
        }[self.how]
        return what, "did a new pod start at all? kubectl get pods"
