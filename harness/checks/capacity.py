"""Capacity follows need: no node too many, no need unmet for long, no more idle GPUs and cost than allowed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.checks.sight import blind
from harness.checks.story import moment, tell
from harness.checks.units import NS_PER_S, both, clock_s, count, listed, scenario_s, span_ns
from harness.history.gpus import Fleet, bought, fleets, is_spot, price_of
from harness.history.lives import (
    GPU,
    Json,
    Life,
    condition,
    gpus_of,
    lives,
    node_of,
    node_of_claim,
    unschedulable,
    workload_pods,
)
from harness.history.recording import once
from harness.history.replica_sets import leaving
from harness.history.tables import ObjectEvent, Outcome
from harness.verdict import Evidence, Finding, Role, Status, Value

if TYPE_CHECKING:
    from harness.history.reader import History
    from harness.spec.checks import CapacitySpec

NEEDS = ("load_offered", "machine_did_not_stall", "steady_before")
_BLINDING = frozenset({"Node", "Pod"})
_HOUR_S = 3600.0
_MANY = 1_000_000_000
_OBJECTS = 8
_REGISTERS_S = 120.0
"""Scenario seconds within which an instance that was launched has a Node."""
_SETTLE_NS = NS_PER_S // 4
"""Watches of pods and of nodes are not ordered among each other."""


@dataclass(frozen=True, slots=True)
class Wait:
    """A pod that found no room for want of GPUs, and how long it waited."""

    pod: Life
    refused: ObjectEvent
    end_ns: int
    placed: bool

    @property
    def length_ns(self) -> int:
        return self.end_ns - self.refused.t_ns


@dataclass(slots=True)
class Sums:
    """Integrals over the load, in node- and GPU-nanoseconds, and extremes with their moments."""

    node_ns: int = 0
    spot_ns: int = 0
    gpu_ns: int = 0
    serving_ns: int = 0
    starting_ns: int = 0
    short_ns: int = 0
    price_ns: float = 0.0
    unpriced: set[str] = field(default_factory=set)
    nodes_peak: int = 0
    over: int = 0
    over_ns: int | None = None
    protected_min: int | None = None
    protected_ns: int | None = None


def capacity(history: History, spec: CapacitySpec) -> Finding:
    """Needed is what all pods that held or asked for GPUs at once so far would fill; nodes there at the start of the
    load count as wanted, and nodes that are about to go are not counted: that they stay unused is idle time.

    A GPU is idle while no pod on it is ready. Prices are those of the run (`history/run.json`, by pool or instance
    type). A node-hour is a scenario hour; cost per million tokens counts clock time, as token rates do.

    UNKNOWN without GPU nodes, where no node came and no pod found no room and no limit on idleness, cost or spot is
    set, where a limit on cost has no price or no token to go by, and when the recorder was blind for nodes or pods.
    """
    waits = shortages(history)
    came = [n for n in lives(history.objects, "Node") if bought(n.last) and n.born_ns > history.run.load_start_ns]
    sums = _sums(history)
    figures = _figures(history, sums)
    limits = _limits(spec, sums, figures)
    standing = len(limits) if sums.node_ns else 0
    unregistered = _unregistered_at_once(history)
    exercised = len(came) + len(waits) + standing + unregistered
    limit_ns = span_ns(spec.short_s_max, history.run.time_scale)
    long = [w for w in waits if w.length_ns > limit_ns]
    open_ = [w for w in waits if not w.placed and w not in long and w.end_ns >= history.recorded_until_ns]
    wrong = _wrong(history, spec, sums, long, unregistered) + [text for name, text, bad in limits if bad]
    missing = [name for name, _, bad in limits if bad is None]
    gap = blind(history, _BLINDING, history.run.load_start_ns)
    if not sums.node_ns:
        status, sentence = Status.UNKNOWN, "no node with GPUs was seen during the load"
    elif wrong and gap is None:
        status, sentence = Status.FAIL, "; ".join(wrong)
    elif gap is not None:
        status, sentence = Status.UNKNOWN, f"the recorder was blind for {gap.kind}, so capacity is not known throughout"
    elif missing:
        status, sentence = Status.UNKNOWN, f"not measured: {listed(missing)} (no price stated, or no token served)"
    elif not exercised:
        status, sentence = Status.UNKNOWN, "no node came and no pod found no room, so capacity was not put to the test"
    elif open_:
        status, sentence = Status.UNKNOWN, f"{open_[0].pod.name} still found no room when the recording ended"
    else:
        status, sentence = Status.PASS, _good(history, sums, figures, len(came), waits)
    numbers: dict[str, Value] = {
        "nodes_created": len(came), "nodes_peak": sums.nodes_peak, "nodes_over": sums.over,
        "instances_without_node": unregistered,
        "pods_short": len(waits), "pods_short_late": len(long), "short_s_worst": _worst_s(history, waits), **figures,
    }  # fmt: skip
    story = _story(history, spec, sums, long, wrong) if status is Status.FAIL else ""
    return Finding(
        "capacity",
        Role.CHECK,
        status,
        sentence,
        exercised,
        numbers,
        _evidence(history, waits, came),
        NEEDS,
        story=story,
    )


def shortages(history: History) -> list[Wait]:
    """Pods that were refused for want of GPUs, the longest wait first."""
    until = history.recorded_until_ns
    found = []
    for pod in lives(history.objects, "Pod"):
        refused = pod.when(_no_gpu) if gpus_of(pod.last) else None
        if refused is None or refused.t_ns < history.run.load_start_ns:
            continue
        bound, left = pod.when(lambda p: bool(node_of(p))), leaving(pod)
        ends = [e.t_ns for e in (bound, left) if e is not None and e.t_ns >= refused.t_ns]
        found.append(Wait(pod, refused, min(ends, default=until), bound is not None))
    return sorted(found, key=lambda wait: -wait.length_ns)


def _no_gpu(pod: Json) -> bool:
    """A message that names no resource at all is taken for one: a gang's says only that it does not fit."""
    message = str(condition(pod, "PodScheduled").get("message") or "")
    return unschedulable(pod) and (GPU in message or "Insufficient" not in message)


def _sums(history: History) -> Sums:
    sums = Sums()
    needed = 0
    over, unprotected = Lasting(0), Lasting(-_MANY)
    for start, end, fleet in fleets(history, {pod.uid for pod in workload_pods(history)}):
        _add(sums, fleet, end - start)
        staying = fleet.nodes - fleet.leaving_nodes
        at_start = staying if start == history.run.load_start_ns else 0
        needed = max(needed, math.ceil(fleet.asked / fleet.node_gpus_max), at_start)
        over.take(staying - needed, start, end)
        unprotected.take(fleet.replicas_on_spot - fleet.replicas, start, end)
    sums.over, sums.over_ns = over.most, over.since_ns
    if unprotected.since_ns is not None:
        sums.protected_min, sums.protected_ns = -unprotected.most, unprotected.since_ns
    return sums


@dataclass(slots=True)
class Lasting:
    """The most that lasted for longer than watches take to agree, and since when."""

    most: int
    since_ns: int | None = None
    _start_ns: int | None = None
    _least: int = 0

    def take(self, value: int, start_ns: int, end_ns: int) -> None:
        if value <= self.most:
            self._start_ns = None
            return
        if self._start_ns is None:
            self._start_ns, self._least = start_ns, value
        self._least = min(self._least, value)
        if end_ns - self._start_ns > _SETTLE_NS:
            self.most, self.since_ns = self._least, self._start_ns
            self._start_ns = None if value == self._least else self._start_ns
            self._least = value


def _add(sums: Sums, fleet: Fleet, span: int) -> None:
    serving, held = fleet.serving, min(fleet.held, fleet.gpus)
    sums.gpu_ns += fleet.gpus * span
    sums.serving_ns += serving * span
    sums.starting_ns += max(0, held - serving) * span
    sums.short_ns += fleet.waiting * span
    sums.node_ns += fleet.nodes * span
    sums.spot_ns += fleet.spot_nodes * span
    sums.nodes_peak = max(sums.nodes_peak, fleet.nodes)
    sums.price_ns += fleet.price_per_hour * span
    sums.unpriced |= {name for name, n in fleet.unpriced.items() if n}


@once
def figures_of(history: History) -> dict[str, Value]:
    """What the capacity amounts to, by figure; None for what was not measured."""
    return _figures(history, _sums(history))


def _figures(history: History, sums: Sums) -> dict[str, Value]:
    scale = history.run.time_scale
    table = history.requests
    tokens = int(table.loc[table["outcome"] == Outcome.OK, "output_tokens"].sum())
    hours = clock_s(history.run.load_end_ns - history.run.load_start_ns) / _HOUR_S
    priced = bool(history.run.prices_per_hour) and not sums.unpriced and hours > 0
    per_clock_hour = sums.price_ns / NS_PER_S / _HOUR_S
    return {
        "gpu_s": scenario_s(sums.gpu_ns, scale),
        "gpu_s_idle": scenario_s(sums.gpu_ns - sums.serving_ns, scale),
        "gpu_s_idle_starting": scenario_s(sums.starting_ns, scale),
        "gpu_s_short": scenario_s(sums.short_ns, scale),
        "gpu_idle_ratio": (1 - sums.serving_ns / sums.gpu_ns) if sums.gpu_ns else None,
        "spot_ratio": (sums.spot_ns / sums.node_ns) if sums.node_ns else None,
        "protected_ready_min": sums.protected_min,
        "cost": per_clock_hour * scale if priced else None,
        "cost_per_hour": per_clock_hour / hours if priced else None,
        "cost_per_million_tokens": per_clock_hour / tokens * 1e6 if priced and tokens else None,
        "output_tokens": tokens,
    }


def _limits(spec: CapacitySpec, sums: Sums, figures: dict[str, Value]) -> list[tuple[str, str, bool | None]]:
    """The limits that are set, each with what to say, and whether it is broken; None where it was not measured."""
    found: list[tuple[str, str, bool | None]] = []
    for name in ("gpu_idle_ratio", "cost_per_hour", "cost_per_million_tokens", "spot_ratio"):
        limit, value = getattr(spec, f"{name}_max"), figures[name]
        if limit is not None:
            measured = value if isinstance(value, int | float) else None
            text = f"{name} was {measured:.3g} (limit {limit:g})" if measured is not None else name
            found.append((name, text, None if measured is None else measured > limit))
    if spec.protected_ready_min is not None:
        low = sums.protected_min
        text = f"only {count(low or 0, 'ready replica')} off spot (at least {spec.protected_ready_min} wanted)"
        found.append(("protected_ready", text, None if low is None else low < spec.protected_ready_min))
    return found


def _unregistered_at_once(history: History) -> int:
    """The most NodeClaims at once that had been launched for ``_REGISTERS_S`` and had no Node."""
    nodes = lives(history.objects, "Node")
    spans = []
    for claim in lives(history.objects, "NodeClaim"):
        launched = claim.when(lambda c: condition(c, "Launched").get("status") == "True")
        if launched is None:
            continue
        names = (claim.name, node_of_claim(claim))
        # A node that registers anew under its name came with its claim the first time.
        own = [n for n in nodes if n.name in names and (n.gone is None or n.gone.t_ns > claim.born_ns)]
        ends = [node.born_ns for node in own] + ([claim.gone.t_ns] if claim.gone else [])
        late_ns = launched.t_ns + span_ns(_REGISTERS_S, history.run.time_scale)
        spans.append((late_ns, min(ends, default=history.recorded_until_ns)))
    return max((sum(1 for a, b in spans if a <= t < b) for t, _ in spans), default=0)


def _wrong(history: History, spec: CapacitySpec, sums: Sums, long: list[Wait], unregistered: int) -> list[str]:
    parts = []
    if spec.unregistered_max is not None and unregistered > spec.unregistered_max:
        parts.append(
            f"{count(unregistered, 'instance')} at once without a Node {_REGISTERS_S:.0f} s after their launch "
            f"(allowed {spec.unregistered_max})"
        )
    if long:
        worst = long[0]
        held = f"waited for GPUs for {both(worst.length_ns, history.run.time_scale)}"
        parts.append(
            f"{count(len(long), 'pod')} short for too long: {worst.pod.name} {held} (limit {spec.short_s_max:.0f} s)"
        )
    if sums.over > spec.nodes_over_max:
        parts.append(f"{count(sums.over, 'node')} more than needed at once (allowed {spec.nodes_over_max})")
    return parts


def _good(history: History, sums: Sums, figures: dict[str, Value], came: int, waits: list[Wait]) -> str:
    idle, cost = figures["gpu_idle_ratio"], figures["cost_per_million_tokens"]
    short = f", the longest for {both(waits[0].length_ns, history.run.time_scale)}" if waits else ""
    price = f", {cost:.2f} per million tokens" if isinstance(cost, float) else ", no price stated"
    return (
        f"{count(came, 'node')} came, never more than {sums.over} beyond need; {count(len(waits), 'pod')} short of GPUs"
        f"{short}; {idle:.0%} of GPU time idle{price}"
    )


def _story(history: History, spec: CapacitySpec, sums: Sums, long: list[Wait], wrong: list[str]) -> str:
    if long:
        worst = long[0]
        message = str(condition(worst.refused.object, "PodScheduled").get("message") or "")
        return tell(
            promised=f"a pod that asks for GPUs has them within {spec.short_s_max:.0f} s",
            happened="; ".join(wrong),
            when=f"{worst.pod.name} was refused {moment(history, worst.refused.t_ns)}",
            objects=[wait.pod.name for wait in long],
            cause=f"the scheduler said: {message}" if message else "",
            change="raise the pool's limit or stock, add a pool to fall back to, or keep spare capacity",
        )
    cause, change, at_ns = _first_broken(history, spec, sums)
    return tell(
        promised="capacity, idle time and cost stay within their limits",
        happened="; ".join(wrong),
        when=moment(history, at_ns),
        objects=[node.name for node in lives(history.objects, "Node") if bought(node.last)][:_OBJECTS],
        cause=cause,
        change=change,
    )


def _first_broken(history: History, spec: CapacitySpec, sums: Sums) -> tuple[str, str, int | None]:
    """Cause, remedy and moment of the first limit that is broken; idleness and cost have no moment."""
    if sums.over > spec.nodes_over_max:
        return "nodes were made that no pod asked for", "check the provisioner's batching and its pools", sums.over_ns
    if spec.protected_ready_min is not None and (sums.protected_min or 0) < spec.protected_ready_min:
        change = "keep some replicas off spot: a node affinity, or a second Deployment for the floor"
        return "the ready replicas were all, or too many of them, on spot nodes", change, sums.protected_ns
    if spec.unregistered_max is not None and (lost := _unregistered_at_once(history)) > spec.unregistered_max:
        cause = f"{count(lost, 'instance')} ran and were paid for without ever becoming a Node"
        return (
            cause,
            "look at the machine's image and user data; launch no second one before the first has joined",
            None,
        )
    idle = sums.gpu_ns - sums.serving_ns
    starting = sums.starting_ns / idle if idle else 0.0
    scale = history.run.time_scale
    cause = (
        f"of {scenario_s(sums.gpu_ns, scale):.0f} GPU-seconds {scenario_s(idle, scale):.0f} were idle, {starting:.0%} "
        f"of these held by pods that were still starting, the rest by none"
    )
    return cause, "consolidate nodes sooner, start pods faster, or choose pools whose nodes fit what is asked for", None


def _worst_s(history: History, waits: list[Wait]) -> float | None:
    return scenario_s(waits[0].length_ns, history.run.time_scale) if waits else None


def _evidence(history: History, waits: list[Wait], came: list[Life]) -> tuple[Evidence, ...]:
    scale = history.run.time_scale
    found = [
        Evidence(
            f"objects:{wait.refused.index}", wait.refused.t_ns,
            f"{wait.pod.name} waited for GPUs for {both(wait.length_ns, scale)}"
            f"{'' if wait.placed else ', never placed'}",
            {"pod": wait.pod.name, "gpus": gpus_of(wait.pod.last), "wait_s": scenario_s(wait.length_ns, scale)},
        )
        for wait in waits
    ]  # fmt: skip
    for node in came:
        price = price_of(node.last, history.run.prices_per_hour)
        facts: dict[str, Value] = {
            "node": node.name, "gpus": bought(node.last), "spot": is_spot(node.last), "price_per_hour": price,
        }  # fmt: skip
        found.append(Evidence(f"objects:{node.seen[0].index}", node.born_ns, f"{node.name} came", facts))
    return tuple(found)
