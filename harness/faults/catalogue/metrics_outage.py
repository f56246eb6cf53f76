"""What the autoscaler reads is blank, old, or a 0 that nobody measured."""

from __future__ import annotations

from typing import ClassVar, Literal

from harness.faults.fault import Strike, Variant
from harness.faults.fidelity import BESIDE_REAL_NODES, FidelityMap
from harness.faults.holding import PartHoldFault, turn
from harness.faults.senses import senses_of
from harness.spec.model import Text

STALE_S = 40.0
"""Scenario seconds after which a sample is older than two scrape intervals."""


class MetricsOutage(PartHoldFault):
    """Blast radius: every reader of the pods' metrics for ``hold_s``, the HPA first; the pods serve on."""

    name: ClassVar[str] = "metrics_outage"
    colour: ClassVar[str] = "#393b79"
    fidelity: ClassVar[FidelityMap] = BESIDE_REAL_NODES
    part: ClassVar[str] = "metrics pipeline"
    variants: ClassVar[tuple[Variant, ...]] = (
        Variant("blank", "Prometheus is down: no series, no answer", {"hold_s": 90, "how": "blank"}),
        Variant("stale", "scrapes stand still, the last samples age", {"hold_s": 120, "how": "stale"}),
        Variant(
            "empty result read as 0",
            "KEDA's ignoreNullValues: an empty query counts as 0 while requests wait",
            {"hold_s": 90, "how": "zero"},
        ),
    )

    how: Literal["blank", "stale", "zero"]
    metric: Text = "vllm_request_success_total"
    """Which metric is looked at: one that is never 0 on a server that has served."""

    def seen_s(self) -> float:
        return 75.0

    async def inject(self, strike: Strike) -> None:
        await turn(strike, "metrics.pipeline", "pipeline", self.how)

    async def signs(self, strike: Strike) -> dict[str, str]:
        read = await senses_of(strike.ground).pod_metric(strike.ground.namespace, self.metric)
        match self.how:
            case "blank":
                sign = None if read.values else f"{self.metric} has no value (HTTP {read.status})"
            case "stale":
                newest = max(read.stamps.values(), default="")
                old_s = strike.unchanged_s("newest", newest)
                sign = f"the newest sample has not changed for {old_s:.0f} s" if newest and old_s > STALE_S else None
            case "zero":
                zero = bool(read.values) and set(read.values.values()) == {"0"}
                sign = f"{self.metric} is 0 on all {len(read.values)} pods" if zero else None
        return {self.part: f"{self.part}: {sign}"} if sign else {}

    def expected(self) -> tuple[str, str]:
        what = {
            "blank": f"{self.metric} has no value any more",
            "stale": f"no newer sample of {self.metric} for {STALE_S:g} s",
            "zero": f"{self.metric} is 0 everywhere",
        }[self.how]
        return what, "kubectl get --raw /apis/custom.metrics.k8s.io/v1beta2/namespaces/NS/pods/*/METRIC"
