"""The autoscalers of a run, what each was told to keep, and what it could read of its metric."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

import pandas as pd

from harness.clock import NS_PER_S
from harness.history.lives import Json, Life, lives, pods_of, template_labels
from harness.history.recording import once
from harness.selectors import parse_selector

if TYPE_CHECKING:
    from harness.history.reader import History

METRICS_SOURCE = "custom.metrics"
PAUSE_S = 20
"""More than one of an autoscaler's default periods (15 s), so that no single low reading ends a need."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One answer of the metrics API: its value per pod. A pod that it did not name has none."""

    t_ns: int
    pods: dict[str, float]

    @property
    def mean(self) -> float:
        return fmean(self.pods.values())


@dataclass(frozen=True, slots=True)
class Need:
    """A time in which an autoscaler could read that more was needed."""

    above_ns: tuple[int, ...]
    """The readings above what it keeps, at least one."""

    @property
    def start_ns(self) -> int:
        return self.above_ns[0]

    @property
    def end_ns(self) -> int:
        return self.above_ns[-1]


@once
def autoscalers(history: History) -> tuple[Life, ...]:
    """Those of the workload: a cluster has others, and what they read and do is not ours to judge."""
    found = lives(history.objects, "HorizontalPodAutoscaler")
    return tuple(scaler for scaler in found if not _anothers(history, scaler))


def _anothers(history: History, scaler: Life) -> bool:
    """Whether what it scales is surely not the workload: in another namespace, or recorded with a pod template that the
    workload's selector does not match, and without a pod of the workload."""
    workload = history.run.workload
    if (namespace := workload.get("namespace")) and scaler.namespace != namespace:
        return True
    kind = str((scaler.last.get("spec", {}).get("scaleTargetRef") or {}).get("kind"))
    targets = [target for target in lives(history.objects, kind) if scales(scaler, target)]
    labels = [template_labels(target.last) for target in targets]
    selector = parse_selector(workload.get("selector", ""))
    if not labels or any(own is None or selector.matches(own) for own in labels):
        return False
    return not any(pods_of(history, target) for target in targets)


def scales(autoscaler: Life, target: Life) -> bool:
    """Whether it decides that object's size. One that names no target, as in a cut recording, decides none."""
    ref = autoscaler.last.get("spec", {}).get("scaleTargetRef") or {}
    return autoscaler.namespace == target.namespace and (ref.get("kind"), ref.get("name")) == (target.kind, target.name)


def replicas_min(autoscaler: Json) -> int:
    return int(autoscaler.get("spec", {}).get("minReplicas", 1))


def pod_metrics(autoscaler: Json) -> dict[str, float]:
    """Its metrics per pod, and the average that it keeps of each."""
    found: dict[str, float] = {}
    for metric in autoscaler.get("spec", {}).get("metrics") or ():
        pods = metric.get("pods") or {}
        if (name := pods.get("metric", {}).get("name")) and (value := pods.get("target", {}).get("averageValue")):
            found[str(name)] = quantity(str(value))
    return found


def told(autoscaler: Json, metric: str) -> float | None:
    """What it says itself that it read last, as an average per pod."""
    for current in autoscaler.get("status", {}).get("currentMetrics") or ():
        pods = current.get("pods") or {}
        if pods.get("metric", {}).get("name") == metric and (value := pods.get("current", {}).get("averageValue")):
            return quantity(str(value))
    return None


def replicas_max(autoscaler: Json) -> int | None:
    value = autoscaler.get("spec", {}).get("maxReplicas")
    return None if value is None else int(value)


def readings(history: History, metric: str) -> list[Reading]:
    """The recorder's own scrapes of what the autoscaler reads, in the order of time."""
    table = history.samples
    own = table[(table["source"] == METRICS_SOURCE) & (table["name"] == metric)]
    codes, known = pd.factorize(own["labels"])
    pods = [str(json.loads(labels).get("pod", labels)) for labels in known]
    scraped: dict[int, dict[str, float]] = {}
    for t, code, value in zip(own["t_ns"].tolist(), codes.tolist(), own["value"].tolist(), strict=True):
        scraped.setdefault(t, {})[pods[code]] = value
    return [Reading(t, pods) for t, pods in sorted(scraped.items())]


def _kept(history: History) -> list[tuple[str, float]]:
    """Each metric with what an autoscaler was told to keep of it: two may keep different values of one."""
    return list(dict.fromkeys(pair for scaler in autoscalers(history) for pair in pod_metrics(scaler.last).items()))


@once
def needs(history: History) -> list[Need]:
    """By their start. A need ends when its metric is read to be no longer above what is kept for ``PAUSE_S`` scenario
    seconds; readings that are missing end nothing."""
    pause_ns = round(PAUSE_S / history.run.time_scale * NS_PER_S)
    found: list[Need] = []
    for metric, target in _kept(history):
        above: list[int] = []
        met_ns: int | None = None
        for reading in readings(history, metric):
            if reading.mean <= target:
                met_ns = reading.t_ns if met_ns is None else met_ns
                continue
            if above and met_ns is not None and reading.t_ns - met_ns >= pause_ns:
                found.append(Need(tuple(above)))
                above = []
            above.append(reading.t_ns)
            met_ns = None
        found += [Need(tuple(above))] if above else []
    return sorted(found, key=lambda need: (need.start_ns, need.end_ns))


def readable_ns(found: Sequence[Need]) -> list[int]:
    """When a metric of an autoscaler was read to be above what it keeps."""
    return sorted({t_ns for need in found for t_ns in need.above_ns})


_SUFFIXES = {
    "m": 1e-3,
    "k": 1e3,
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
    "Ki": 2.0**10,
    "Mi": 2.0**20,
    "Gi": 2.0**30,
    "Ti": 2.0**40,
}


def quantity(text: str) -> float:
    """A Kubernetes quantity: ``2250m``, ``60k`` (what the API server makes of 60000), ``2Gi``."""
    for suffix, factor in _SUFFIXES.items():
        if text.endswith(suffix):
            return float(text[: -len(suffix)]) * factor
    return float(text)
