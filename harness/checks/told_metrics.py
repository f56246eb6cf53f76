"""What an autoscaler says that it read of a source that KEDA asks for it: nowhere else stands what it was handed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from harness.checks.pressures import JOIN_NS, Hole, Pressure, pressed
from harness.history.autoscaler import autoscalers, quantity
from harness.history.lives import Json, Life, condition, lives

if TYPE_CHECKING:
    from harness.history.reader import History

_COUNTS_WAITING = ("waiting", "queue")
"""A metric with one of these in its name, or in its query, counts requests that wait."""
_TRIGGER = re.compile(r"s(\d+)-")
"""KEDA names the metric of its n-th trigger so (keda v2.21 pkg/scalers, GenerateMetricNameWithIndex)."""


@dataclass(frozen=True, slots=True)
class Step:
    """From ``t_ns`` until the next one the autoscaler said that it reads ``value`` per pod; None: that it cannot."""

    t_ns: int
    value: float | None
    index: int


@dataclass(frozen=True, slots=True)
class Sourced:
    """A metric that counts waiting requests, and that the autoscaler of this uid is handed by KEDA. ``target``: per
    pod."""

    scaler: str
    metric: str
    target: float
    steps: tuple[Step, ...]


def counts_waiting(said: str) -> bool:
    """Whether a metric's name, or a query, is of requests that wait."""
    return any(word in said for word in _COUNTS_WAITING)


def sourced(history: History) -> list[Sourced]:
    """Of each autoscaler that a ScaledObject has made: its triggers whose query counts waiting requests."""
    found = []
    for scaler in autoscalers(history):
        queries = _queries(history, scaler)
        for name, target in _external(scaler.last).items():
            trigger = _TRIGGER.match(name)
            query = queries.get(int(trigger[1]), "") if trigger else ""
            if counts_waiting(query):
                steps = tuple(_steps(scaler, partial(_told, metric=name)))
                found.append(Sourced(scaler.uid, f"{name} of {scaler.name}", target, steps))
    return found


def resources(history: History) -> list[Sourced]:
    """CPU and memory, which an autoscaler gets of metrics-server: whether it says that it could read them, as 1."""
    found = []
    for scaler in autoscalers(history):
        for metric in scaler.last.get("spec", {}).get("metrics") or ():
            named = metric.get("resource") or metric.get("containerResource")
            if named:
                steps = tuple(_steps(scaler, lambda _: 1.0))
                found.append(Sourced(scaler.uid, f"{named.get('name')} of {scaler.name}", 0.0, steps))
    return found


def told_pressures(history: History, each: Sourced) -> list[Pressure]:
    """The clients' account, compared with what the autoscaler says of the same time."""
    found: list[Pressure] = []
    until_ns = history.recorded_until_ns
    for start, end in pressed(history, each.target) if each.steps else ():
        within = [(a, b) for a, b in _spans(each, until_ns) if b > start - JOIN_NS and a.t_ns <= end + JOIN_NS]
        above = [max(step.t_ns, start - JOIN_NS) for step, _ in within if (step.value or 0.0) > each.target]
        seen = above[0] if above else None
        until = [step for step, _ in within if seen is None or step.t_ns < seen]
        known = [step.value for step in until if step.value is not None]
        words = "nothing" if not known else "0" if not any(known) else "too little"
        ref = f"objects:{(until or [step for step, _ in within] or list(each.steps))[-1].index}"
        found.append(Pressure(each.metric, start, end, seen, words, ref))
    return found


def told_holes(history: History, each: Sourced, limit_ns: int) -> list[Hole]:
    """Longer than the limit without a value, by its own word, while the load was on. Before it ever read one it had
    nothing to lose."""
    run = history.run
    known = next((step.t_ns for step in each.steps if step.value is not None), history.recorded_until_ns)
    found: list[Hole] = []
    for step, end_ns in _spans(each, history.recorded_until_ns):
        start_ns, end_ns = max(step.t_ns, run.load_start_ns), min(end_ns, run.load_end_ns)
        if step.value is None and step.t_ns >= known and end_ns > start_ns:
            if found and found[-1].end_ns == start_ns:
                start_ns = found.pop().start_ns
            found.append(Hole(each.metric, start_ns, end_ns, True, f"objects:{step.index}"))
    return [hole for hole in found if hole.end_ns - hole.start_ns > limit_ns]


def _spans(each: Sourced, until_ns: int) -> list[tuple[Step, int]]:
    ends = [after.t_ns for _, after in pairwise(each.steps)]
    return list(zip(each.steps, [*ends, until_ns], strict=True)) if each.steps else []


def _queries(history: History, scaler: Life) -> dict[int, str]:
    """Of the triggers of the ScaledObject that owns it, by their number."""
    meta = scaler.last.get("metadata", {})
    owner = next((o["name"] for o in meta.get("ownerReferences") or () if o.get("kind") == "ScaledObject"), None)
    for scaled in lives(history.objects, "ScaledObject"):
        if (scaled.namespace, scaled.name) == (scaler.namespace, owner):
            triggers = scaled.last.get("spec", {}).get("triggers") or ()
            return {i: str((t.get("metadata") or {}).get("query", "")) for i, t in enumerate(triggers)}
    return {}


def _external(autoscaler: Json) -> dict[str, float]:
    """Its external metrics, and the average per pod that it keeps of each."""
    found: dict[str, float] = {}
    for metric in autoscaler.get("spec", {}).get("metrics") or ():
        external = metric.get("external") or {}
        value = external.get("target", {}).get("averageValue")
        if (name := external.get("metric", {}).get("name")) and value:
            found[str(name)] = quantity(str(value))
    return found


def _steps(scaler: Life, told: Callable[[Json], float | None]) -> list[Step]:
    found: list[Step] = []
    for event in scaler.seen:
        active = condition(event.object, "ScalingActive")
        if not active:
            continue
        failed = active.get("status") == "False" and str(active.get("reason")).startswith("FailedGet")
        value = None if failed else told(event.object)
        if not found or found[-1].value != value:
            found.append(Step(event.t_ns, value, event.index))
    return found


def _told(autoscaler: Json, metric: str) -> float | None:
    for current in autoscaler.get("status", {}).get("currentMetrics") or ():
        external = current.get("external") or {}
        value = external.get("current", {}).get("averageValue")
        if external.get("metric", {}).get("name") == metric and value is not None:
            return quantity(str(value))
    return None
