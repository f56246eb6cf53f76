"""The horizontal pod autoscaler for metrics of type Pods."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from fakes.clock import WallClock
from fakes.config import PlantedBug
from fakes.controllers.controller import Reconciler, run_controller
from fakes.controllers.events import EventRecorder
from fakes.controllers.informer import Informer, Key, key_of
from fakes.controllers.objects import generation_of, name_of, namespace_of, with_condition
from fakes.controllers.quantity import format_milli, milli
from fakes.controllers.scaling import (
    Behavior,
    MetricsMissing,
    Recommendation,
    ScaleChange,
    behavior_of,
    default_behavior,
    limit,
    limit_without_behavior,
    propose,
    stabilize,
)
from fakes.kube.selectors import match_label_selector
from fakes.metrics.reader import MetricsReader
from fakes.timing import Timing
from harness.kube.port import DEPLOYMENT, HPA, POD, REPLICA_SET, ApiError, EventType, Json, Kube, Resource

SCALABLE: dict[str, Resource] = {DEPLOYMENT.kind: DEPLOYMENT, REPLICA_SET.kind: REPLICA_SET}


@dataclass(slots=True)
class _Memory:
    """What one autoscaler remembers between syncs; a restarted controller forgets it, as the real one does."""

    recommendations: list[Recommendation] = field(default_factory=list)
    added: list[ScaleChange] = field(default_factory=list)
    removed: list[ScaleChange] = field(default_factory=list)

    def forget(self, before_s: float) -> None:
        self.recommendations = [r for r in self.recommendations if r.at_s > before_s]
        self.added = [c for c in self.added if c.at_s > before_s]
        self.removed = [c for c in self.removed if c.at_s > before_s]


@dataclass(slots=True)
class _Sync:
    """One pass over one autoscaler; ``conditions`` collects what its status will say."""

    hpa: Json
    stamp: str
    conditions: list[Json]
    metrics: list[Json] = field(default_factory=list)

    def set(self, type: str, status: bool, reason: str, message: str) -> None:
        new = {"type": type, "status": "True" if status else "False", "reason": reason, "message": message}
        self.conditions = with_condition(self.conditions, new, self.stamp)


@dataclass(frozen=True, slots=True)
class _Target:
    resource: Resource
    object: Json
    replicas: int


class HpaController:
    def __init__(
        self,
        kube: Kube,
        wall: WallClock,
        timing: Timing,
        metrics: MetricsReader,
        bugs: Collection[PlantedBug] = (),
    ) -> None:
        self._kube = kube
        self._wall = wall
        self._timing = timing
        self._metrics = metrics
        self._blind = PlantedBug.HPA_BLIND in bugs
        self._events = EventRecorder(kube, wall, "horizontal-pod-autoscaler")
        self._hpas = Informer(kube, HPA)
        self._pods = Informer(kube, POD)
        self._memory: dict[Key, _Memory] = {}
        self._loop: Reconciler[Key] = Reconciler(self._tick)
        self._hpas.on_change(self._changed)

    async def run(self) -> None:
        await run_controller((self._hpas, self._pods), self._loop.run)

    def _changed(self, type: EventType, new: Json, old: Json | None) -> None:
        if type is EventType.DELETED:
            self._memory.pop(key_of(new), None)
        elif type is EventType.ADDED:
            self._loop.queue.add_after(key_of(new), self._timing.clock_s(self._timing.durations.hpa_sync_s))

    async def _tick(self, key: Key) -> None:
        hpa = self._hpas.objects.get(key)
        if hpa is None:
            return
        # Before the work, so that a failed pass does not shift the rhythm: it is simply the next one that tries again.
        self._loop.queue.add_after(key, self._timing.clock_s(self._timing.durations.hpa_sync_s))
        sync = _Sync(hpa, self._wall.stamp(), list((hpa.get("status") or {}).get("conditions") or []))
        try:
            await self._reconcile(sync, self._memory.setdefault(key, _Memory()))
        except (ApiError, ConnectionError):
            return  # the status could not be written

    async def _reconcile(self, sync: _Sync, memory: _Memory) -> None:
        hpa = sync.hpa
        target = await self._target(sync)
        if target is None:
            await self._write_status(sync, None, None)
            return
        now_s = asyncio.get_running_loop().time()
        current = target.replicas
        if not memory.recommendations:
            memory.recommendations.append(Recommendation(now_s, current))
        low, high = int(hpa["spec"].get("minReplicas", 1)), int(hpa["spec"]["maxReplicas"])
        reason = ""
        if current == 0 and low != 0:
            message = "scaling is disabled since the replica count of the target is zero"
            sync.set("ScalingActive", False, "ScalingDisabled", message)
            wanted = 0
        elif current > high:
            wanted, reason = high, "Current number of replicas above Spec.MaxReplicas"
        elif current < low:
            wanted, reason = low, "Current number of replicas below Spec.MinReplicas"
        else:
            try:
                proposed, name = await self._proposal(sync, target)
            except MetricsMissing as missing:
                await self._write_status(sync, current, None)
                await self._events.warning(HPA, hpa, "FailedComputeMetricsReplicas", str(missing))
                return
            reason = f"{name} above target" if proposed > current else "All metrics below target"
            wanted = self._normalized(sync, memory, proposed, current, (low, high), now_s)
        if self._blind:
            wanted = current
        if wanted != current and not await self._rescale(sync, memory, target, wanted, reason, now_s):
            await self._write_status(sync, current, None)
            return
        await self._write_status(sync, current, wanted)

    async def _target(self, sync: _Sync) -> _Target | None:
        spec = sync.hpa["spec"]["scaleTargetRef"]
        resource = SCALABLE.get(spec["kind"])
        try:
            if resource is None:
                known = ", ".join(SCALABLE)
                raise ApiError(404, "NotFound", f"no scale subresource for kind {spec['kind']}; known: {known}")
            found = await self._kube.get(resource, spec["name"], namespace_of(sync.hpa))
        except (ApiError, ConnectionError) as error:
            message = f"the HPA controller was unable to get the target's current scale: {_text(error)}"
            sync.set("AbleToScale", False, "FailedGetScale", message)
            await self._events.warning(HPA, sync.hpa, "FailedGetScale", _text(error))
            return None
        message = "the HPA controller was able to get the target's current scale"
        sync.set("AbleToScale", True, "SucceededGetScale", message)
        replicas = found["spec"].get("replicas")
        return _Target(resource, found, 1 if replicas is None else int(replicas))

    async def _proposal(self, sync: _Sync, target: _Target) -> tuple[int, str]:
        """The highest number that any metric asks for. With some metrics missing it may only go up."""
        specs: Sequence[Json] = sync.hpa["spec"].get("metrics") or []
        best, name = 0, ""
        failed: list[tuple[str, str]] = []
        for spec in specs:
            try:
                replicas, found = await self._of_metric(sync, target, spec)
            except MetricsMissing as missing:
                failed.append((_failure_reason(spec), str(missing)))
                continue
            if best == 0 or replicas > best:
                best, name = replicas, found
        if not specs or len(failed) == len(specs) or (failed and best < target.replicas):
            reason, first = failed[0] if failed else ("InvalidMetricSourceType", "no metrics are given")
            message = f"the HPA was unable to compute the replica count: {first}"
            sync.set("ScalingActive", False, reason, message)
            count = f"invalid metrics ({len(failed)} invalid out of {len(specs)}), first error is: {first}"
            raise MetricsMissing(count)
        message = f"the HPA was able to successfully calculate a replica count from {name}"
        sync.set("ScalingActive", True, "ValidMetricFound", message)
        return best, name

    async def _of_metric(self, sync: _Sync, target: _Target, spec: Json) -> tuple[int, str]:
        if spec.get("type") != "Pods":
            raise MetricsMissing(f'unknown metric source type "{spec.get("type")}"; this autoscaler reads Pods metrics')
        metric = spec["pods"]["metric"]["name"]
        wanted = milli(spec["pods"]["target"]["averageValue"])
        values = await self._values(namespace_of(sync.hpa), target.object, metric)
        selector = target.object["spec"]["selector"]
        pods = [
            p
            for p in self._pods.objects.values()
            if namespace_of(p) == namespace_of(sync.hpa)
            and match_label_selector(selector, p["metadata"].get("labels") or {})
        ]
        result = propose(pods, values, target.replicas, wanted, self._behavior(sync.hpa)[0].tolerances)
        current = {"metric": {"name": metric}, "current": {"averageValue": format_milli(result.usage_milli)}}
        sync.metrics.append({"type": "Pods", "pods": current})
        return result.replicas, f"pods metric {metric}"

    async def _values(self, namespace: str, target: Json, metric: str) -> dict[str, int]:
        try:
            found = await self._metrics.pod_metric(namespace, selector_text(target["spec"]["selector"]), metric)
        except (ApiError, ConnectionError) as error:
            why = f"unable to fetch metrics from custom metrics API: {_text(error)}"
            raise MetricsMissing(f"unable to get metric {metric}: {why}") from error
        if not found:
            raise MetricsMissing(f"unable to get metric {metric}: no metrics returned from custom metrics API")
        return {m.pod: milli(m.value) for m in found}

    def _behavior(self, hpa: Json) -> tuple[Behavior, bool]:
        """Second: whether the autoscaler states one, for without it an older rule limits the rate."""
        spec = hpa["spec"].get("behavior")
        scale = self._timing.time_scale
        return (behavior_of(spec, scale), True) if spec else (default_behavior(scale), False)

    def _normalized(
        self, sync: _Sync, memory: _Memory, proposed: int, current: int, bounds: tuple[int, int], now_s: float
    ) -> int:
        behavior, stated = self._behavior(sync.hpa)
        held = stabilize(proposed, current, memory.recommendations, now_s, behavior)
        memory.recommendations.append(Recommendation(now_s, proposed))
        periods = [p.period_s for rules in (behavior.up, behavior.down) for p in rules.policies]
        memory.forget(now_s - max(behavior.up.window_s, behavior.down.window_s, *periods))
        sync.set("AbleToScale", True, held.reason, held.message)
        if stated:
            limited = limit(held.replicas, current, bounds, memory.added, memory.removed, now_s, behavior)
        else:
            limited = limit_without_behavior(held.replicas, current, bounds)
        sync.set("ScalingLimited", limited.replicas != held.replicas, limited.reason, limited.message)
        return limited.replicas

    async def _rescale(
        self, sync: _Sync, memory: _Memory, target: _Target, wanted: int, reason: str, now_s: float
    ) -> bool:
        hpa, name = sync.hpa, name_of(target.object)
        patch: Json = {"spec": {"replicas": wanted}}
        try:
            await self._kube.patch(target.resource, name, patch, namespace_of(hpa), subresource="scale")
        except (ApiError, ConnectionError) as error:
            message = f"the HPA controller was unable to update the target scale: {_text(error)}"
            sync.set("AbleToScale", False, "FailedUpdateScale", message)
            failed = f"New size: {wanted}; reason: {reason}; error: {_text(error)}"
            await self._events.warning(HPA, hpa, "FailedRescale", failed)
            return False
        message = f"the HPA controller was able to update the target scale to {wanted}"
        sync.set("AbleToScale", True, "SucceededRescale", message)
        change = ScaleChange(now_s, abs(wanted - target.replicas))
        (memory.added if wanted > target.replicas else memory.removed).append(change)
        await self._events.normal(HPA, hpa, "SuccessfulRescale", f"New size: {wanted}; reason: {reason}")
        return True

    async def _write_status(self, sync: _Sync, current: int | None, desired: int | None) -> None:
        """``desired`` None keeps the one before: nothing was decided."""
        old = sync.hpa.get("status") or {}
        status: Json = {**old, "conditions": sync.conditions, "observedGeneration": generation_of(sync.hpa)}
        if current is not None:
            status["currentReplicas"] = current
            status["currentMetrics"] = sync.metrics or None
        if desired is not None:
            status["desiredReplicas"] = desired
            if current != desired:
                status["lastScaleTime"] = sync.stamp
        status.setdefault("desiredReplicas", 0)
        if status != old:
            patch = {"status": status}
            await self._kube.patch(HPA, name_of(sync.hpa), patch, namespace_of(sync.hpa), subresource="status")


def selector_text(selector: Json) -> str:
    """A LabelSelector object as the text that a query takes."""
    parts = [f"{k}={v}" for k, v in sorted((selector.get("matchLabels") or {}).items())]
    for expression in selector.get("matchExpressions") or []:
        parts.append(_expression_text(expression["key"], expression["operator"], expression.get("values") or []))
    return ",".join(parts)


def _expression_text(key: str, operator: str, values: Sequence[str]) -> str:
    joined = ",".join(sorted(values))
    texts = {"In": f"{key} in ({joined})", "NotIn": f"{key} notin ({joined})", "Exists": key, "DoesNotExist": f"!{key}"}
    return texts[operator]


def _failure_reason(spec: Json) -> str:
    return "FailedGetPodsMetric" if spec.get("type") == "Pods" else "InvalidMetricSourceType"


def _text(error: Any) -> str:
    return str(getattr(error, "message", error))
