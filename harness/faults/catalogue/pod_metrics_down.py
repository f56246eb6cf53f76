"""A model server serves on, and whoever asks for its metrics gets an error."""

from __future__ import annotations

from typing import ClassVar

from harness.faults.catalogue.metrics_outage import STALE_S
from harness.faults.fault import Strike, Variant
from harness.faults.fidelity import ON_FAKES, FidelityMap
from harness.faults.holding import PodHoldFault, turn
from harness.faults.senses import senses_of
from harness.spec.model import Text


class PodMetricsDown(PodHoldFault):
    """Blast radius: ``GET /metrics`` of the picked pods answers 503 for ``hold_s``; they serve all the same. Whoever
    goes by their metrics (autoscaler, endpoint picker) goes by what it knew last, or by nothing."""

    name: ClassVar[str] = "pod_metrics_down"
    colour: ClassVar[str] = "#8ca252"
    fidelity: ClassVar[FidelityMap] = ON_FAKES
    variants: ClassVar[tuple[Variant, ...]] = (
        Variant(
            "one pod's metrics answer 503",
            "an exporter that has run out of memory or file handles",
            {"pods": {"selector": "app=llm", "count": 1}, "hold_s": 120},
        ),
    )

    metric: Text = "vllm_num_requests_running"
    """Which metric is looked at."""

    def seen_s(self) -> float:
        return 75.0

    async def inject(self, strike: Strike) -> None:
        for pod in strike.targets:
            await turn(strike, "pod.metrics", pod, "error")

    async def signs(self, strike: Strike) -> dict[str, str]:
        """By the metrics API, which knows no newer value of the pod, or none at all; others show that it answers."""
        read = await senses_of(strike.ground).pod_metric(strike.ground.namespace, self.metric)
        found: dict[str, str] = {}
        for target in strike.targets:
            name = target.rpartition("/")[2]
            newest = read.stamps.get(name, "")
            old_s = strike.unchanged_s(f"newest of {name}", newest)
            if not newest and read.values:
                found[target] = f"{target}: no value of {self.metric}, which {len(read.values)} other pods have"
            elif newest and old_s > STALE_S:
                found[target] = f"{target}: no newer value of {self.metric} for {old_s:.0f} s"
        return found

    def expected(self) -> tuple[str, str]:
        what = f"no newer value of {self.metric} of the pod for {STALE_S:g} s, or none at all"
        return what, "kubectl get --raw /apis/custom.metrics.k8s.io/v1beta2/namespaces/NS/pods/*/METRIC"
