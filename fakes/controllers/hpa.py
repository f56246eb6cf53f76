"""The horizontal pod autoscaler, after kubernetes v1.37 pkg/controller/podautoscaler/horizontal.go."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from fakes.clock import WallClock
from fakes.config import PlantedBug
from fakes.controllers.controller import Reconciler, run_controller
from fakes.controllers.events import EventRecorder
from fakes.controllers.hpa_metrics import MetricFailed, MetricSources, Target, Wanted
from fakes.controllers.hpa_mischief import HpaMischief
from fakes.controllers.informer import Informer, Key, key_of
from fakes.controllers.label_text import selector_text
from fakes.controllers.objects import condition_status, generation_of, merged, namespace_of, same_status, with_condition
from fakes.controllers.scaling import (
    Behavior,
    Recommendation,
    ScaleChange,
    behavior_of,
    default_behavior,
    limit,
    limit_without_behavior,
    stabilize,
    stabilize_down,
)
from fakes.kube.selectors import label_matcher
from fakes.metrics.reader import MetricsApi, MetricsReader
from fakes.timing import Timing
from harness.kube import port
from harness.kube.port import HPA, POD, ApiError, EventType, Json, Kube, Resource


@dataclass(slots=True)
class _Memory:
    """What one autoscaler remembers between syncs; a restarted controller forgets it, as the real one does."""

    recommendations: list[Recommendation] = field(default_factory=list)
    added: list[ScaleChange] = field(default_factory=list)
    removed: list[ScaleChange] = field(default_factory=list)
    selector: str = ""

    def forget(self, before_s: float) -> None:
        self.recommendations = [r for r in self.recommendations if r.at_s > before_s]
        self.added = [c for c in self.added if c.at_s > before_s]
        self.removed = [c for c in self.removed if c.at_s > before_s]


@dataclass(slots=True)
class _Sync:
    """One pass over one autoscaler; ``conditions`` collects what its status will say."""

    hpa: Json
    stamp: str
    now_s: float
    conditions: list[Json]
    metrics: list[Json] | None = None

    def set(self, type: str, status: bool, reason: str, message: str) -> None:
        new = {"type": type, "status": "True" if status else "False", "reason": reason, "message": message}
        self.conditions = with_condition(self.conditions, new, self.stamp)

    @property
    def low(self) -> int:
        given = self.hpa["spec"].get("minReplicas")
        return 1 if given is None else int(given)

    @property
    def high(self) -> int:
        return int(self.hpa["spec"]["maxReplicas"])


class _NoNumber(Exception):
    """Nothing can be computed; the text is the event's."""


class HpaController:
    def __init__(
        self,
        kube: Kube,
        wall: WallClock,
        timing: Timing,
        metrics: MetricsReader,
        bugs: Collection[PlantedBug] = (),
        apis: Sequence[MetricsApi] = (),
    ) -> None:
        """``apis``: the aggregated APIs for metrics of type Object, External, Resource and ContainerResource."""
        self._kube = kube
        self._wall = wall
        self._timing = timing
        self._sources = MetricSources(
            metrics, apis, wall, timing, empty_is_zero=PlantedBug.HPA_READS_EMPTY_AS_ZERO in bugs
        )
        self._mischief = HpaMischief(bugs, timing)
        self._events = EventRecorder(kube, wall, "horizontal-pod-autoscaler")
        self._hpas = Informer(kube, HPA)
        self._pods = Informer(kube, POD)
        self._pods_of = self._pods.index(namespace_of)
        self._memory: dict[Key, _Memory] = {}
        self._loop: Reconciler[Key] = Reconciler(self._tick)
        self._hpas.on_change(self._changed)

    async def run(self) -> None:
        await run_controller((self._hpas, self._pods), self._loop.run)

    def _changed(self, type: EventType, new: Json, old: Json | None) -> None:
        """A new one, and one whose spec was changed, is looked at at once."""
        if type is EventType.DELETED:
            self._memory.pop(key_of(new), None)
        elif old is None or generation_of(old) != generation_of(new):
            self._loop.queue.add(key_of(new))

    async def _tick(self, key: Key) -> None:
        hpa = self._hpas.objects.get(key)
        if hpa is None:
            return
        # Before the work, so that a failed pass does not shift the rhythm: it is simply the next one that tries again.
        self._loop.queue.add_after(key, self._timing.clock_s(self._timing.durations.hpa_sync_s))
        now_s = asyncio.get_running_loop().time()
        sync = _Sync(hpa, self._wall.stamp(), now_s, list((hpa.get("status") or {}).get("conditions") or []))
        try:
            await self._reconcile(sync, self._memory.setdefault(key, _Memory()))
        except (ApiError, ConnectionError):
            return  # the status could not be written

    async def _reconcile(self, sync: _Sync, memory: _Memory) -> None:
        target = await self._target(sync)
        if target is None:
            await self._update_status(sync, {"conditions": sync.conditions})
            return
        message = "the HPA controller was able to get the target's current scale"
        sync.set("AbleToScale", True, "SucceededGetScale", message)
        if not memory.recommendations:
            memory.recommendations.append(Recommendation(sync.now_s, target.replicas))
        current, was_zeroed = target.replicas, condition_status(sync.hpa, "ScaledToZero") == "True"
        reason = ""
        if current == 0 and not (was_zeroed and (sync.low != 0 or _measures_from_zero(sync.hpa))):
            message = "scaling is disabled since the replica count of the target is zero"
            sync.set("ScalingActive", False, "ScalingDisabled", message)
            wanted = 0
        elif current > sync.high:
            wanted, reason = sync.high, "Current number of replicas above Spec.MaxReplicas"
        elif 0 < current < sync.low:
            wanted, reason = sync.low, "Current number of replicas below Spec.MinReplicas"
        else:
            try:
                wanted, reason = await self._measured(sync, memory, target)
            except _NoNumber as failed:
                await self._write_status(sync, current, None)
                await self._events.warning(HPA, sync.hpa, "FailedComputeMetricsReplicas", str(failed))
                return
        wanted = self._mischief.misled(wanted, current, (sync.low, sync.high))
        if wanted != current and not await self._rescale(sync, memory, target, wanted, reason):
            await self._write_status(sync, current, None)
            return
        await self._write_status(sync, current, wanted)

    async def _measured(self, sync: _Sync, memory: _Memory, target: Target) -> tuple[int, str]:
        """The number that metrics and rules come to, and why it differs from the present one."""
        current = target.replicas
        best = await self._proposal(sync, memory, target)
        proposed = best.replicas
        reason = f"{best.name if proposed > 0 else ''} above target" if proposed > current else ""
        if proposed < current:
            reason = "All metrics below target"
        wanted = self._normalized(sync, memory, proposed, current)
        if current == 0 and wanted < sync.low:
            wanted, reason = sync.low, reason or "Current number of replicas below Spec.MinReplicas"
        return wanted, reason

    async def _target(self, sync: _Sync) -> Target | None:
        spec, namespace = sync.hpa["spec"]["scaleTargetRef"], namespace_of(sync.hpa)
        try:
            resource = _scalable(spec)
            found = await self._kube.get(resource, spec["name"], namespace)
        except (ApiError, ConnectionError) as error:
            message = f"the HPA controller was unable to get the target's current scale: {_text(error)}"
            sync.set("AbleToScale", False, "FailedGetScale", message)
            await self._events.warning(HPA, sync.hpa, "FailedGetScale", _text(error))
            return None
        status = found.get("status") or {}
        given = status.get("hpaPodSelector")  # of what scales groups of pods by their leaders
        selector = str(given) if given else selector_text(found["spec"].get("selector") or {})
        matches = label_matcher(selector)
        pods = [
            p
            for p in self._pods_of.get(namespace)
            if matches is not None and matches(p["metadata"].get("labels") or {})
        ]
        replicas = found["spec"].get("replicas")
        wanted = 1 if replicas is None else int(replicas)
        return Target(resource, spec["name"], wanted, int(status.get("replicas") or 0), selector, pods)

    async def _proposal(self, sync: _Sync, memory: _Memory, target: Target) -> Wanted:
        """The highest number that any metric asks for. With some metrics missing it may only go up."""
        await self._check_selector(sync, memory, target)
        specs: Sequence[Json] = sync.hpa["spec"].get("metrics") or []
        sync.metrics = [{"type": ""} for _ in specs]
        best = Wanted(0, "", {})
        failed: list[MetricFailed] = []
        tolerances = self._behavior(sync.hpa)[0].tolerances
        for number, spec in enumerate(specs):
            try:
                found = await self._sources.wanted(namespace_of(sync.hpa), spec, target, tolerances)
            except MetricFailed as failure:
                failed.append(failure)
                await self._events.warning(HPA, sync.hpa, failure.reason, str(failure))
                continue
            sync.metrics[number] = found.status
            if best.replicas == 0 or found.replicas > best.replicas:
                best = found
        if len(failed) >= len(specs) or (failed and best.replicas < target.replicas):
            if failed:
                message = f"the HPA was unable to compute the replica count: {failed[0]}"
                sync.set("ScalingActive", False, failed[0].reason, message)
            first = failed[0].outer if failed else ""
            raise _NoNumber(f"invalid metrics ({len(failed)} invalid out of {len(specs)}), first error is: {first}")
        message = f"the HPA was able to successfully calculate a replica count from {best.name}"
        sync.set("ScalingActive", True, "ValidMetricFound", message)
        return best

    async def _check_selector(self, sync: _Sync, memory: _Memory, target: Target) -> None:
        """Two autoscalers over the same pods would fight; both stop."""
        if not target.selector:
            sync.set("ScalingActive", False, "InvalidSelector", "the HPA target's scale is missing a selector")
            await self._events.warning(HPA, sync.hpa, "SelectorRequired", "selector is required")
            raise _NoNumber("selector is required")
        memory.selector = target.selector
        namespace = namespace_of(sync.hpa)
        others = sorted(k for k, m in self._memory.items() if k[0] == namespace and m.selector)
        selecting = [k for k in others if _matches_any(self._memory[k].selector, target.pods)]
        if len(selecting) > 1:
            listed = " ".join(f"{space}/{name}" for space, name in selecting[:2])
            why = f"pods by selector {target.selector} are controlled by more than one HPA (e.g. [{listed}])"
            sync.set("ScalingActive", False, "AmbiguousSelector", why)
            await self._events.warning(HPA, sync.hpa, "AmbiguousSelector", why)
            raise _NoNumber(why)

    def _behavior(self, hpa: Json) -> tuple[Behavior, bool]:
        """Second: whether the autoscaler states one, for without it an older rule limits the rate."""
        spec = hpa["spec"].get("behavior")
        scale = self._timing.time_scale
        return (behavior_of(spec, scale), True) if spec else (default_behavior(scale), False)

    def _normalized(self, sync: _Sync, memory: _Memory, proposed: int, current: int) -> int:
        behavior, stated = self._behavior(sync.hpa)
        now_s, bounds = sync.now_s, (sync.low, sync.high)
        if stated:
            held = stabilize(proposed, current, memory.recommendations, now_s, behavior)
        else:
            held = stabilize_down(proposed, memory.recommendations, now_s, behavior.down.window_s)
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

    async def _rescale(self, sync: _Sync, memory: _Memory, target: Target, wanted: int, reason: str) -> bool:
        hpa, current = sync.hpa, target.replicas
        patch: Json = {"spec": {"replicas": wanted}}
        try:
            await self._kube.patch(target.resource, target.name, patch, namespace_of(hpa), subresource="scale")
        except (ApiError, ConnectionError) as error:
            message = f"the HPA controller was unable to update the target scale: {_text(error)}"
            sync.set("AbleToScale", False, "FailedUpdateScale", message)
            failed = f"New size: {wanted}; reason: {reason}; error: {_text(error)}"
            await self._events.warning(HPA, hpa, "FailedRescale", failed)
            return False
        message = f"the HPA controller was able to update the target scale to {wanted}"
        sync.set("AbleToScale", True, "SucceededRescale", message)
        change = ScaleChange(sync.now_s, abs(wanted - current))
        (memory.added if wanted > current else memory.removed).append(change)
        await self._events.normal(HPA, hpa, "SuccessfulRescale", f"New size: {wanted}; reason: {reason}")
        if current > 0 and wanted == 0 and sync.low == 0 and _measures_from_zero(hpa):
            sync.set("ScaledToZero", True, "ScaledToZero", "the HPA controller scaled the workload to zero")
        else:
            message = "the HPA controller did not scale the workload to zero"
            sync.set("ScaledToZero", False, "NotScaledToZero", message)
        return True

    async def _write_status(self, sync: _Sync, current: int, desired: int | None) -> None:
        """``desired`` None keeps the one before: nothing was decided."""
        status: Json = {
            "currentReplicas": current,
            "currentMetrics": sync.metrics,
            "conditions": sync.conditions,
            "observedGeneration": generation_of(sync.hpa),
        }
        if desired is not None:
            status["desiredReplicas"] = desired
            if current != desired:
                status["lastScaleTime"] = sync.stamp
        await self._update_status(sync, status)

    async def _update_status(self, sync: _Sync, parts: Json) -> None:
        old = sync.hpa.get("status") or {}
        status = {"desiredReplicas": 0, "currentMetrics": None, **old, **parts}
        if not same_status(status, old):
            await self._kube.update(HPA, merged(sync.hpa, status=status), subresource="status")


def _scalable(reference: Json) -> Resource:
    """The resource that a scaleTargetRef names."""
    version, kind = str(reference.get("apiVersion", "")), str(reference["kind"])
    found = next((r for r in port.RESOURCES if r.api_version == version and r.kind == kind), None)
    if found is None:
        group = version.rpartition("/")[0]
        raise ApiError(404, "NotFound", f'no matches for kind "{kind}" in group "{group}"')
    return found


def _measures_from_zero(hpa: Json) -> bool:
    """Metrics that exist where there are no pods."""
    return any(m.get("type") in ("Object", "External") for m in hpa["spec"].get("metrics") or [])


def _matches_any(selector: str, pods: Sequence[Json]) -> bool:
    matches = label_matcher(selector)
    return matches is not None and any(matches(p["metadata"].get("labels") or {}) for p in pods)


def _text(error: Any) -> str:
    return str(getattr(error, "message", error))
