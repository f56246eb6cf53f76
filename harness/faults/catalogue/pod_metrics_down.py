"""A model server serves on, and whoever asks for its metrics gets an error, or what was true a while ago."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from harness.faults.catalogue.metrics_outage import STALE_S
from harness.faults.fault import Strike, Variant
from harness.faults.fidelity import ON_FAKES, FidelityMap
from harness.faults.holding import PodHoldFault, turn
from harness.faults.seen_traffic import answered_by_pod
from harness.faults.senses import senses_of
from harness.kube.port import POD
from harness.spec.model import Text

_COUNTS = "vllm_request_success_total"
"""Moves whenever the server has answered somebody."""
_ANSWERED = (200, 404)
"""What a metrics API says that works, 404 where no pod has the metric."""


class PodMetricsDown(PodHoldFault):
    """Blast radius: ``GET /metrics`` of the picked pods answers 503 for ``hold_s`` (``error``), or what was true at its
    beginning (``frozen``); they serve all the same. Whoever goes by their metrics (autoscaler, endpoint picker) goes by
    what it knew last, or by nothing. A picked pod that is gone meanwhile has no metrics any more, and shows nothing."""

    name: ClassVar[str] = "pod_metrics_down"
    colour: ClassVar[str] = "#8ca252"
    fidelity: ClassVar[FidelityMap] = ON_FAKES
    variants: ClassVar[tuple[Variant, ...]] = (
        Variant(
            "one pod's metrics answer 503",
            "an exporter that has run out of memory or file handles",
            {"pods": {"selector": "app=llm", "count": 1}, "hold_s": 120},
        ),
        Variant(
            "one pod's metrics stand still",
            "the process that serves them has lost the engine's: they are read without an error, and old",
            {"pods": {"selector": "app=llm", "count": 1}, "hold_s": 120, "how": "frozen"},
        ),
    )

    how: Literal["error", "frozen"] = "error"
    metric: Text = "vllm_num_requests_running"
    """Which metric is looked at for an ``error``."""

    def seen_s(self) -> float:
        return 75.0

    async def inject(self, strike: Strike) -> None:
        for pod in strike.targets:
            await turn(strike, "pod.metrics", pod, self.how)

    async def signs(self, strike: Strike) -> dict[str, str]:
        """By the metrics API: it knows no newer value of the pod, or none at all while it answers; or it counts no
        request more of a pod that, by the gateway's own count, has begun to answer more."""
        there = {pod["metadata"]["name"] for pod in (await strike.ground.kube.list(POD, strike.ground.namespace)).items}
        targets = [target for target in strike.targets if target.rpartition("/")[2] in there]
        return await (self._old(strike, targets) if self.how == "frozen" else self._none(strike, targets))

    async def _none(self, strike: Strike, targets: Sequence[str]) -> dict[str, str]:
        read = await senses_of(strike.ground).pod_metric(strike.ground.namespace, self.metric)
        found: dict[str, str] = {}
        for target in targets:
            name = target.rpartition("/")[2]
            newest = read.stamps.get(name, "")
            old_s = strike.unchanged_s(f"newest of {name}", newest)
            if not newest and read.status in _ANSWERED:
                others = f"which {len(read.values)} other pods have" if read.values else "nor has any other pod"
                found[target] = f"{target}: no value of {self.metric}, {others}"
            elif newest and old_s > STALE_S:
                found[target] = f"{target}: no newer value of {self.metric} for {old_s:.0f} s"
        return found

    async def _old(self, strike: Strike, targets: Sequence[str]) -> dict[str, str]:
        read = await senses_of(strike.ground).pod_metric(strike.ground.namespace, _COUNTS)
        begun = await answered_by_pod(strike)
        found: dict[str, str] = {}
        for target in targets:
            name = target.rpartition("/")[2]
            if (counted := read.values.get(name)) is None:
                continue
            old_s = strike.unchanged_s(f"counted of {name}", counted)
            if old_s == 0:
                strike.notes[f"begun by {name}"] = (str(begun.get(name, 0.0)), 0.0)
            more = begun.get(name, 0.0) - float(strike.notes[f"begun by {name}"][0])
            if old_s > STALE_S and more > 0:
                stood = f"{_COUNTS} stood at {counted} for {old_s:.0f} s"
                found[target] = f"{target}: {stood}, and it began {more:.0f} answers more"
        return found

    def expected(self) -> tuple[str, str]:
        where = "kubectl get --raw /apis/custom.metrics.k8s.io/v1beta2/namespaces/NS/pods/*/METRIC"
        if self.how == "frozen":
            return f"the same value of {_COUNTS} for {STALE_S:g} s of a pod that gets requests", where
        return f"no newer value of {self.metric} of the pod for {STALE_S:g} s, or none at all", where
