"""The horizontal autoscaler's arithmetic: from metrics to a wanted number, and what rules make of it. Pure.

Times are seconds of the event loop; windows and periods have to be handed in clock seconds too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from fakes.controllers.objects import is_ready, is_terminating, name_of, phase_of
from fakes.controllers.quantity import parse_quantity
from harness.kube.port import Json

TOLERANCE = 0.1
DOWN_WINDOW_S = 300.0
_LARGEST = 2**31 - 1
_SHARE_OF_NOBODY = -(2**63)
"""What infinity and not-a-number become as Go's int64 on amd64, and so what a real status says of a target at zero."""


class MetricsMissing(Exception):
    """No number can be computed; the autoscaler keeps its hands off."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """``usage_milli`` is the average that the status shows."""

    replicas: int
    usage_milli: int


@dataclass(frozen=True, slots=True)
class Tolerances:
    up: float = TOLERANCE
    down: float = TOLERANCE

    def within(self, ratio: float) -> bool:
        return 1.0 - self.down <= ratio <= 1.0 + self.up


def propose(
    pods: Sequence[Json],
    values_milli: Mapping[str, int],
    current: int,
    target_milli: int,
    tolerances: Tolerances = Tolerances(),
) -> Proposal:
    """Replicas that would bring the average to its target.

    Pods that cannot be judged damp the change: a pod without a metric counts as on target when there is little load and
    as idle when there is much; pending pods count as idle when there is much.
    """
    if not pods:
        raise MetricsMissing("no pods returned by selector while calculating replica count")
    pending, missing, counted = _sort_pods(pods, values_milli)
    if not counted:
        raise MetricsMissing("did not receive metrics for targeted pods (pods might be unready)")
    usage, ratio = _usage(counted.values(), target_milli)
    up_with_pending = bool(pending) and ratio > 1.0
    if not up_with_pending and not missing:
        if tolerances.within(ratio):
            return Proposal(current, usage)
        return Proposal(math.ceil(ratio * len(counted)), usage)
    assumed = dict(counted)
    if ratio != 1.0:
        assumed.update(dict.fromkeys(missing, target_milli if ratio < 1.0 else 0))
    if up_with_pending:
        assumed.update(dict.fromkeys(pending, 0))
    _, damped = _usage(assumed.values(), target_milli)
    if tolerances.within(damped) or (ratio < 1.0 < damped) or (damped < 1.0 < ratio):
        return Proposal(current, usage)
    replicas = math.ceil(damped * len(assumed))
    if (damped < 1.0 and replicas > current) or (damped > 1.0 and replicas < current):
        return Proposal(current, usage)
    return Proposal(replicas, usage)


def propose_total(
    usage_milli: int, target_milli: int, current: int, pods: Sequence[Json], tolerances: Tolerances
) -> Proposal:
    """For one value of all pods together: the ready pods times the ratio. From zero, the ratio itself."""
    ratio = usage_milli / target_milli
    if current == 0:
        return Proposal(math.ceil(ratio), usage_milli)
    if tolerances.within(ratio):
        return Proposal(current, usage_milli)
    if not pods:
        why = "no pods returned by selector while calculating replica count"
        raise MetricsMissing(f"unable to calculate ready pods: {why}")
    ready = sum(phase_of(p) == "Running" and is_ready(p) for p in pods)
    return Proposal(min(_LARGEST, math.ceil(ratio * ready)), usage_milli)


def propose_average(usage_milli: int, target_milli: int, present: int, tolerances: Tolerances) -> Proposal:
    """For one value that is shared by the pods that the target has now."""
    replicas = present
    # Go divides by zero to infinity here, or to not-a-number where there is nothing to share: neither is within.
    if present == 0 or not tolerances.within(usage_milli / (target_milli * present)):
        replicas = min(_LARGEST, math.ceil(usage_milli / target_milli))
    return Proposal(replicas, math.ceil(usage_milli / present) if present else _SHARE_OF_NOBODY)


def _sort_pods(pods: Iterable[Json], values: Mapping[str, int]) -> tuple[list[str], list[str], dict[str, int]]:
    """Names of pending pods, names of running pods without a metric, values of the others."""
    pending: list[str] = []
    missing: list[str] = []
    counted: dict[str, int] = {}
    for pod in pods:
        name = name_of(pod)
        if is_terminating(pod) or phase_of(pod) == "Failed":
            continue
        if phase_of(pod) == "Pending":
            pending.append(name)
        elif name not in values:
            missing.append(name)
        else:
            counted[name] = values[name]
    return pending, missing, counted


def _usage(values: Iterable[int], target_milli: int) -> tuple[int, float]:
    listed = list(values)
    usage = sum(listed) // len(listed)
    return usage, usage / target_milli


class Policy(StrEnum):
    PODS = "Pods"
    PERCENT = "Percent"


class Select(StrEnum):
    MAX = "Max"
    MIN = "Min"
    DISABLED = "Disabled"


@dataclass(frozen=True, slots=True)
class ScalingPolicy:
    kind: Policy
    value: int
    period_s: float


@dataclass(frozen=True, slots=True)
class Rules:
    """One direction of ``spec.behavior``, defaults filled in, in clock seconds."""

    window_s: float
    select: Select
    policies: tuple[ScalingPolicy, ...]


@dataclass(frozen=True, slots=True)
class Behavior:
    up: Rules
    down: Rules
    tolerances: Tolerances = Tolerances()


def default_behavior(time_scale: float = 1.0) -> Behavior:
    """Kubernetes' own: up by 100 % or 4 pods per 15 s, whichever is more; down at once, but not below the highest
    number recommended in the last 300 s."""
    return behavior_of({}, time_scale)


def behavior_of(spec: Json, time_scale: float = 1.0) -> Behavior:
    """``spec.behavior`` with Kubernetes' defaults where it is silent."""
    up, down = spec.get("scaleUp") or {}, spec.get("scaleDown") or {}
    up_default = (ScalingPolicy(Policy.PODS, 4, 15 / time_scale), ScalingPolicy(Policy.PERCENT, 100, 15 / time_scale))
    down_default = (ScalingPolicy(Policy.PERCENT, 100, 15 / time_scale),)
    return Behavior(
        _rules(up, 0.0, up_default, time_scale),
        _rules(down, DOWN_WINDOW_S, down_default, time_scale),
        Tolerances(*(float(parse_quantity(rules.get("tolerance", TOLERANCE))) for rules in (up, down))),
    )


def _rules(spec: Json, window_s: float, default: tuple[ScalingPolicy, ...], time_scale: float) -> Rules:
    given = spec.get("stabilizationWindowSeconds")
    policies = tuple(
        ScalingPolicy(Policy(p["type"]), int(p["value"]), float(p["periodSeconds"]) / time_scale)
        for p in spec.get("policies") or ()
    )
    window_s = window_s if given is None else float(given)
    return Rules(window_s / time_scale, Select(spec.get("selectPolicy") or Select.MAX), policies or default)


@dataclass(frozen=True, slots=True)
class Recommendation:
    at_s: float
    replicas: int


@dataclass(frozen=True, slots=True)
class ScaleChange:
    at_s: float
    replicas: int  # how many were added or removed


@dataclass(frozen=True, slots=True)
class Limited:
    """What a rule made of a number, with the condition's reason and message."""

    replicas: int
    reason: str
    message: str


def stabilize(wanted: int, current: int, past: Sequence[Recommendation], now_s: float, behavior: Behavior) -> Limited:
    """Neither above the lowest of the up window nor below the highest of the down window."""
    lowest = min([wanted, *(r.replicas for r in past if r.at_s > now_s - behavior.up.window_s)])
    highest = max([wanted, *(r.replicas for r in past if r.at_s > now_s - behavior.down.window_s)])
    held = min(max(current, lowest), highest)
    if held == wanted:
        return Limited(held, "ReadyForNewScale", "recommended size matches current size")
    if wanted >= current:
        message = "recent recommendations were lower than current one, applying the lowest recent recommendation"
        return Limited(held, "ScaleUpStabilized", message)
    message = "recent recommendations were higher than current one, applying the highest recent recommendation"
    return Limited(held, "ScaleDownStabilized", message)


def stabilize_down(wanted: int, past: Sequence[Recommendation], now_s: float, window_s: float) -> Limited:
    """The older rule, still in force where ``spec.behavior`` is absent: the highest of the window, even above what
    there is now."""
    highest = max([wanted, *(r.replicas for r in past if r.at_s >= now_s - window_s)])
    if highest == wanted:
        return Limited(wanted, "ReadyForNewScale", "recommended size matches current size")
    message = "recent recommendations were higher than current one, applying the highest recent recommendation"
    return Limited(highest, "ScaleDownStabilized", message)


_WITHIN = ("DesiredWithinRange", "the desired count is within the acceptable range")
_TOO_MANY = ("TooManyReplicas", "the desired replica count is more than the maximum replica count")
_TOO_FEW = ("TooFewReplicas", "the desired replica count is less than the minimum replica count")
_TOO_FAST_UP = ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate")
_TOO_FAST_DOWN = ("ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate")


def limit(
    wanted: int,
    current: int,
    bounds: tuple[int, int],
    added: Sequence[ScaleChange],
    removed: Sequence[ScaleChange],
    now_s: float,
    behavior: Behavior,
) -> Limited:
    """Holds ``wanted`` within the policies and within ``bounds`` (minReplicas, maxReplicas)."""
    low, high = bounds
    if wanted > current:
        fastest = max(current, _up_limit(current, added, removed, now_s, behavior.up))
        ceiling, why = (fastest, _TOO_FAST_UP) if high > fastest else (high, _TOO_MANY)
        return Limited(ceiling, *why) if wanted > ceiling else Limited(wanted, *_WITHIN)
    if wanted < current:
        fastest = min(current, _down_limit(current, added, removed, now_s, behavior.down))
        floor, why = (fastest, _TOO_FAST_DOWN) if low < fastest else (low, _TOO_FEW)
        return Limited(floor, *why) if wanted < floor else Limited(wanted, *_WITHIN)
    return Limited(wanted, *_WITHIN)


def _up_limit(
    current: int, added: Sequence[ScaleChange], removed: Sequence[ScaleChange], now_s: float, rules: Rules
) -> int:
    if rules.select is Select.DISABLED:
        return current
    proposals = []
    for policy in rules.policies:
        start = current - _within(added, now_s, policy) + _within(removed, now_s, policy)
        grown = start + policy.value if policy.kind is Policy.PODS else math.ceil(start * (1 + policy.value / 100))
        proposals.append(grown)
    return max(proposals) if rules.select is Select.MAX else min(proposals)


def _down_limit(
    current: int, added: Sequence[ScaleChange], removed: Sequence[ScaleChange], now_s: float, rules: Rules
) -> int:
    if rules.select is Select.DISABLED:
        return current
    proposals = []
    for policy in rules.policies:
        start = current - _within(added, now_s, policy) + _within(removed, now_s, policy)
        shrunk = start - policy.value if policy.kind is Policy.PODS else int(start * (1 - policy.value / 100))
        proposals.append(shrunk)
    return min(proposals) if rules.select is Select.MAX else max(proposals)


def _within(changes: Sequence[ScaleChange], now_s: float, policy: ScalingPolicy) -> int:
    return sum(c.replicas for c in changes if c.at_s > now_s - policy.period_s)


def limit_without_behavior(wanted: int, current: int, bounds: tuple[int, int]) -> Limited:
    """The older rule, still in force where ``spec.behavior`` is absent: no more than twice as many, or four."""
    low, high = bounds
    fastest = max(2 * current, 4)
    ceiling, why = (fastest, _TOO_FAST_UP) if high > fastest else (high, _TOO_MANY)
    if wanted < low:
        return Limited(low, *_TOO_FEW)
    return Limited(ceiling, *why) if wanted > ceiling else Limited(wanted, *_WITHIN)
