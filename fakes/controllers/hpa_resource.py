"""Metrics of type Resource and ContainerResource: read from ``metrics.k8s.io``, compared with what pods ask for.

After kubernetes v1.37 pkg/controller/podautoscaler (replica_calculator.go, metrics/utilization.go, metrics/client.go).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from fakes.clock import WallClock, parse_stamp
from fakes.controllers.objects import condition_of, is_terminating, name_of, phase_of
from fakes.controllers.quantity import format_milli, milli
from fakes.controllers.scaling import MetricsMissing, Tolerances
from fakes.metrics.reader import MetricsApi
from fakes.timing import Timing
from harness.kube.port import Json

GROUP = "metrics.k8s.io"
CPU = "cpu"
CPU_INITIALIZATION_S = 300.0
INITIAL_READINESS_S = 30.0
"""Defaults of the flags --horizontal-pod-autoscaler-cpu-initialization-period and -initial-readiness-delay."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Of one pod; ``window_s`` in seconds of the clock."""

    milli: int
    t: datetime
    window_s: float


@dataclass(frozen=True, slots=True)
class ResourceProposal:
    """``percent`` of the requests; None for a target that is an amount."""

    replicas: int
    average_milli: int
    percent: int | None = None

    def current(self) -> Json:
        found: Json = {"averageValue": format_milli(self.average_milli)}
        return found if self.percent is None else {"averageUtilization": self.percent} | found


class ResourceSource:
    def __init__(self, api: MetricsApi | None, wall: WallClock, timing: Timing) -> None:
        self._api = api
        self._wall = wall
        self._initialization_s = timing.clock_s(CPU_INITIALIZATION_S)
        self._readiness_s = timing.clock_s(INITIAL_READINESS_S)

    async def propose(
        self, namespace: str, spec: Json, selector: str, pods: Sequence[Json], replicas: int, tolerances: Tolerances
    ) -> ResourceProposal:
        """``spec``: name, target and for a single container its name. Raises ``MetricsMissing``."""
        name, target, container = str(spec["name"]), spec["target"], str(spec.get("container", ""))
        average, percent = target.get("averageValue"), target.get("averageUtilization")
        what = "usage" if average is not None else "utilization"
        if average is None and percent is None:
            raise MetricsMissing(
                "invalid resource metric source: neither an average utilization target nor an average value (usage) "
                "target was set"
            )
        try:
            try:
                samples = await self._read(namespace, selector, name, container)
            except MetricsMissing as missing:
                raise MetricsMissing(f"unable to get metrics for resource {name}: {missing}") from missing
            if not pods:
                raise MetricsMissing("no pods returned by selector while calculating replica count")
            groups = self._grouped(pods, samples, name)
            if not groups.counted:
                raise MetricsMissing("did not receive metrics for targeted pods (pods might be unready)")
            if average is not None:
                return _by_amount(groups, milli(average), replicas, tolerances)
            requests = {name_of(p): _request(p, name, container) for p in pods}
            return _by_share(groups, requests, int(percent), replicas, tolerances)
        except MetricsMissing as missing:
            raise MetricsMissing(f"failed to get {name} {what}: {missing}") from missing

    async def _read(self, namespace: str, selector: str, resource: str, container: str) -> dict[str, Sample]:
        said = "unable to fetch metrics from resource metrics API"
        if self._api is None:
            lost = f"the server could not find the requested resource (get pods.{GROUP})"
            raise MetricsMissing(f"{said}: {lost}")
        status, body = await self._api.handle(f"namespaces/{namespace}/pods", {"labelSelector": selector})
        if status >= 400:
            raise MetricsMissing(f"{said}: {body.get('message', '')}")
        if not body["items"]:
            raise MetricsMissing("no metrics returned from resource metrics API")
        found = {}
        for item in body["items"]:
            usages = [c["usage"].get(resource) for c in item["containers"] if container in ("", c["name"])]
            if usages and None not in usages:
                window_s = float(str(item["window"]).rstrip("s"))
                total = sum(map(milli, usages))
                found[str(item["metadata"]["name"])] = Sample(total, parse_stamp(item["timestamp"]), window_s)
        return found

    def _grouped(self, pods: Sequence[Json], samples: Mapping[str, Sample], resource: str) -> _Groups:
        found = _Groups({}, [], [])
        for pod in pods:
            name = name_of(pod)
            if is_terminating(pod) or phase_of(pod) == "Failed":
                continue
            if phase_of(pod) == "Pending":
                found.unready.append(name)
            elif name not in samples:
                found.missing.append(name)
            elif resource == CPU and self._is_unready(pod, samples[name]):
                found.unready.append(name)
            else:
                found.counted[name] = samples[name].milli
        return found

    def _is_unready(self, pod: Json, sample: Sample) -> bool:
        """What starting costs is no load: such CPU does not count."""
        ready, started = condition_of(pod, "Ready"), (pod.get("status") or {}).get("startTime")
        if ready is None or not started:
            return True
        began, changed = parse_stamp(started), parse_stamp(ready["lastTransitionTime"])
        is_false = ready.get("status") == "False"
        if began + timedelta(seconds=self._initialization_s) > self._wall.now():
            return is_false or sample.t < changed + timedelta(seconds=sample.window_s)
        return is_false and began + timedelta(seconds=self._readiness_s) > changed


@dataclass(slots=True)
class _Groups:
    """Values of pods that count, and the names of those that do not."""

    counted: dict[str, int]
    unready: list[str]
    missing: list[str]

    def assumed(self, ratio: float, for_missing: Mapping[str, int]) -> dict[str, int]:
        """With what the others are taken to use: the cautious guess in either direction."""
        found = dict(self.counted)
        if ratio < 1.0:
            found |= {name: for_missing[name] for name in self.missing}
        elif ratio > 1.0:
            found |= dict.fromkeys((*self.missing, *self.unready), 0)
        return found

    def is_certain(self, ratio: float) -> bool:
        return not (self.unready and ratio > 1.0) and not self.missing


def _by_amount(groups: _Groups, target: int, replicas: int, tolerances: Tolerances) -> ResourceProposal:
    def ratio_of(values: Mapping[str, int]) -> tuple[float, int]:
        usage = sum(values.values()) // len(values)
        return usage / target, usage

    ratio, usage = ratio_of(groups.counted)
    assumed = groups.assumed(ratio, dict.fromkeys(groups.missing, target))
    wanted = _decided(groups, ratio, ratio_of(assumed)[0], len(assumed), replicas, tolerances)
    return ResourceProposal(wanted, usage)


def _by_share(
    groups: _Groups, requests: Mapping[str, int], target: int, replicas: int, tolerances: Tolerances
) -> ResourceProposal:
    def ratio_of(values: Mapping[str, int]) -> tuple[float, int]:
        asked = sum(requests[name] for name in values)
        if asked == 0:
            raise MetricsMissing("no metrics returned matched known pods")
        percent = sum(values.values()) * 100 // asked
        return percent / target, percent

    ratio, percent = ratio_of(groups.counted)
    share = max(100, target)
    assumed = groups.assumed(ratio, {name: requests[name] * share // 100 for name in groups.missing})
    damped = ratio if groups.is_certain(ratio) else ratio_of(assumed)[0]
    wanted = _decided(groups, ratio, damped, len(assumed), replicas, tolerances)
    return ResourceProposal(wanted, sum(groups.counted.values()) // len(groups.counted), percent)


def _decided(groups: _Groups, ratio: float, damped: float, assumed: int, replicas: int, tolerances: Tolerances) -> int:
    if groups.is_certain(ratio):
        return replicas if tolerances.within(ratio) else math.ceil(ratio * len(groups.counted))
    if tolerances.within(damped) or (ratio < 1.0 < damped) or (damped < 1.0 < ratio):
        return replicas
    wanted = math.ceil(damped * assumed)
    turned = (damped < 1.0 and wanted > replicas) or (damped > 1.0 and wanted < replicas)
    return replicas if turned else wanted


def _request(pod: Json, resource: str, container: str) -> int:
    sidecars = [c for c in pod["spec"].get("initContainers") or () if c.get("restartPolicy") == "Always"]
    total = 0
    for each in (*pod["spec"]["containers"], *sidecars):
        if container in ("", each["name"]):
            asked = ((each.get("resources") or {}).get("requests") or {}).get(resource)
            if asked is None:
                where = f"container {each['name']} of Pod {name_of(pod)}"
                raise MetricsMissing(f"missing request for {resource} in {where}")
            total += milli(asked)
        if container == each["name"]:
            return total
    if container:
        raise MetricsMissing(f"container {container} not found in Pod {name_of(pod)}")
    return total
