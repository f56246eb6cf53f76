"""What an autoscaler reads follows the load in time, has no holes, and is not 0 while requests wait."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.checks.blind_steps import BlindStep, blind_steps
from harness.checks.echoes import Echo, echoes
from harness.checks.pressures import Hole, Pressure, holes_of, pressures_of
from harness.checks.rows import rows_of
from harness.checks.sight import blind
from harness.checks.stale_steps import StaleStep, stale_steps
from harness.checks.story import clock, moment, tell
from harness.checks.told_metrics import counts_waiting, resources, sourced, told_holes, told_pressures
from harness.checks.units import both, count, listed, scenario_s, span_ns
from harness.history.autoscaler import METRICS_SOURCE, autoscalers, pod_metrics, readings
from harness.verdict import Evidence, Finding, Role, Status, Value

if TYPE_CHECKING:
    from harness.history.reader import History
    from harness.spec.checks import MetricsPathSpec

MADE_UP = "made_up"
"""The fact of an evidence that a number which nobody had measured was taken for one."""
WAITING_S = "waiting_s"
"""The fact of an evidence for how many scenario seconds too many requests had waited when a size was lowered."""
NEEDS = ("load_offered", "machine_did_not_stall", "clocks_agree")
PROVES = "a size that was lowered without a reading"
_BLINDING = frozenset({"Deployment", "ReplicaSet", "HorizontalPodAutoscaler", "Pod"})
_BLIND_S = 60.0
"""Scenario seconds without a reading after which no step down can rest on one, whatever hole the limits allow."""


@dataclass(frozen=True, slots=True)
class _Seen:
    judged: list[Pressure]
    slow: list[Pressure]
    holes: list[Hole]
    blind: list[BlindStep]
    stale: list[StaleStep]
    echoes: list[Echo]
    gone: list[Hole]
    """All of a minute and more, whatever the limits allow."""
    borne: list[Hole]
    """Of metrics that do not count requests, such as CPU: what becomes of the size is all that is judged."""
    unwatched: bool
    names: list[str]
    """Of the metrics that count waiting requests."""
    read: bool


def metrics_path(history: History, spec: MetricsPathSpec) -> Finding:
    """How long after the load's own pressure an autoscaler could read it, by the recorder's scrapes of the same API; of
    what KEDA reads for it, by the autoscaler's own status.

    Pressure is taken from the requests: sent, and without a token for half a clock second. It is compared with metrics
    that count waiting requests; a lag is known no finer than the recorder scrapes (twice a clock second). Pressure that
    is over before `seen_s_max` and was never read puts nothing to the test. A reading that says requests wait when none
    has for `seen_s_max` is older than that, and so is one that takes replicas away when too many for the rest have
    waited all that time (for a minute, where it is the first after a hole). An autoscaler without a reading must leave
    the size as it is: taking replicas away then is wrong whatever the limits say; also when KEDA's `fallback` gives it
    a number in place of one. Of an autoscaler that goes by CPU or memory that is all that is judged.

    UNKNOWN without an autoscaler of the workload that reads such a metric, or that could not read its CPU for a minute,
    when nothing of it was ever read, when requests never waited for long enough, when the recorder itself was not there
    while nothing was read, and when it was blind for sizes, autoscalers or pods and saw nothing wrong.
    """
    seen = _look(history, spec)
    wrong = _wrong(history, spec, seen)
    status, sentence = _judged(history, spec, seen, wrong)
    lags = [p.lag_ns for p in seen.judged if p.lag_ns is not None]
    numbers: dict[str, Value] = {
        "seen_s_max": spec.seen_s_max,
        "pressures": len(seen.judged),
        "never_read": sum(1 for p in seen.slow if p.seen_ns is None),
        "lag_s_worst": scenario_s(max(lags), history.run.time_scale) if lags else None,
        "holes": len(seen.holes),
        "hole_s_longest": _longest_s(history, seen.holes),
        "scaled_down_blind": len(seen.blind),
        "scaled_down_by_the_past": len(seen.stale),
        "read_of_the_past": len(seen.echoes),
    }
    story = _story(history, spec, seen) if status is Status.FAIL else ""
    needs = () if seen.blind else NEEDS
    exercised = (
        len(seen.judged) + len(seen.borne) + len(seen.holes) + len(seen.blind) + len(seen.stale) + len(seen.echoes)
    )
    rows_ = _evidence(history, seen)
    return Finding("metrics_path", Role.CHECK, status, sentence, exercised, numbers, rows_, needs, story=story)


def _look(history: History, spec: MetricsPathSpec) -> _Seen:
    kept = {s.uid: {n: t for n, t in pod_metrics(s.last).items() if counts_waiting(n)} for s in autoscalers(history)}
    metrics = list(dict.fromkeys(pair for own in kept.values() for pair in own.items()))
    read = {name: readings(history, name) for name, _ in metrics}
    limit_ns, hole_ns = (span_ns(s, history.run.time_scale) for s in (spec.seen_s_max, spec.hole_s_max))
    other = sourced(history)
    pressures = [p for name, target in metrics for p in pressures_of(history, name, target, read[name])]
    pressures += [p for each in other for p in told_pressures(history, each)]
    for each in other:
        kept[each.scaler][each.metric] = each.target
    judged = [p for p in pressures if p.seen_ns is not None or p.end_ns - p.start_ns > limit_ns]
    slow = [p for p in judged if p.lag_ns is None or p.lag_ns > limit_ns]
    blind_ns = min(hole_ns, span_ns(_BLIND_S, history.run.time_scale))
    gone = [h for name in read for h in holes_of(history, name, read[name], blind_ns)]
    gone += [h for each in other for h in told_holes(history, each, blind_ns)]
    borne = [h for each in resources(history) for h in told_holes(history, each, blind_ns)]
    gone += borne
    holes = [h for h in gone if h.end_ns - h.start_ns > hole_ns]
    old = [e for n, target in metrics for e in echoes(n, target, read[n], rows_of(history), limit_ns)]
    steps = blind_steps(history, gone)
    stale = stale_steps(history, kept, gone, steps, limit_ns)
    names = sorted({*read, *(each.metric for each in other)})
    was_read = any(read.values()) or any(each.steps for each in other)
    watched = [h for h in holes if h.watched]
    return _Seen(judged, slow, watched, steps, stale, old, gone, borne, len(watched) < len(holes), names, was_read)


def _judged(history: History, spec: MetricsPathSpec, seen: _Seen, wrong: list[str]) -> tuple[Status, str]:
    if any(step.fell_back for step in seen.blind):
        return Status.FAIL, "; ".join(wrong)
    if not seen.names and not seen.borne:
        return Status.UNKNOWN, "no autoscaler reads a metric that counts waiting requests"
    if seen.names and not seen.read:
        return Status.UNKNOWN, f"nobody was ever seen to read a value of {listed(seen.names)}"
    if wrong:
        return Status.FAIL, "; ".join(wrong)
    if seen.unwatched:
        return Status.UNKNOWN, "the recorder did not scrape for a while, so holes in the metric are not known"
    if (gap := blind(history, _BLINDING)) is not None:
        return Status.UNKNOWN, f"nothing was seen to be wrong, but the recorder was blind for {gap.kind}"
    if not seen.judged and not seen.borne:
        return Status.UNKNOWN, "requests never waited for long enough to show in the metric"
    if not seen.judged:
        return Status.PASS, _borne(history, seen.gone)
    worst = max(p.lag_ns or 0 for p in seen.judged)
    return Status.PASS, (
        f"{count(len(seen.judged), 'time')} that requests waited, read within {both(worst, history.run.time_scale)} "
        f"(limit {spec.seen_s_max:.0f} s), {_borne(history, seen.gone)}"
    )


def _borne(history: History, gone: list[Hole]) -> str:
    longest = max((h.end_ns - h.start_ns for h in gone if h.watched), default=None)
    if longest is None:
        return "no hole"
    return f"nothing was read for {both(longest, history.run.time_scale)}, and no replica was taken away meanwhile"


def _wrong(history: History, spec: MetricsPathSpec, seen: _Seen) -> list[str]:
    scale = history.run.time_scale
    parts = []
    if seen.blind:
        b = seen.blind[0]
        times = count(len(seen.blind), "time")
        parts.append(f"scaled down blind {times} (first: {b.target} from {b.before} to {b.after}, while {b.why})")
    if seen.stale:
        s = seen.stale[0]
        lasted = both(s.event.t_ns - s.waiting_since_ns, scale)
        parts.append(
            f"scaled down by a reading of the past {count(len(seen.stale), 'time')} (first: {s.target} from {s.before} "
            f"to {s.after}, when too many for {s.after} had waited for {lasted})"
        )
    never = [p for p in seen.slow if p.lag_ns is None]
    if never:
        p = never[0]
        parts.append(
            f"{p.metric} never showed {count(len(never), 'time')} that requests waited: {p.read} was read for "
            f"{both(p.end_ns - p.start_ns, scale)}"
        )
    late = [(p.lag_ns, p.read) for p in seen.slow if p.lag_ns is not None]
    if late:
        lag_ns, read = max(late)
        after = f"only after {both(lag_ns, scale)} (limit {spec.seen_s_max:.0f} s)"
        parts.append(f"it could be read {after}: {read} was read until then")
    if seen.echoes:
        parts.append(_echo_text(history, spec, seen.echoes))
    if seen.holes:
        longest = max(h.end_ns - h.start_ns for h in seen.holes)
        parts.append(
            f"{count(len(seen.holes), 'hole')} in it, the longest {both(longest, scale)} "
            f"(limit {spec.hole_s_max:.0f} s)"
        )
    return parts


def _echo_text(history: History, spec: MetricsPathSpec, found: list[Echo]) -> str:
    worst = max(found, key=lambda e: e.t_ns - (e.since_ns or 0))
    after = "though none ever had"
    if worst.since_ns is not None:
        after = f"{both(worst.t_ns - worst.since_ns, history.run.time_scale)} after the last had its answer"
    return (
        f"{count(len(found), 'reading')} of the past: {worst.metric} still said that requests waited, {after} "
        f"(limit {spec.seen_s_max:.0f} s)"
    )


def _longest_s(history: History, holes: list[Hole]) -> float | None:
    longest = max((h.end_ns - h.start_ns for h in holes), default=None)
    return None if longest is None else scenario_s(longest, history.run.time_scale)


def _story(history: History, spec: MetricsPathSpec, seen: _Seen) -> str:
    happened = "; ".join(_wrong(history, spec, seen))
    if seen.blind:
        b = seen.blind[0]
        return tell(
            promised="an autoscaler that cannot read its metric leaves the size as it is",
            happened=happened,
            when=moment(history, b.event.t_ns),
            objects=[b.target],
            cause=b.why,
            change="let a missing value be missing: a query that finds nothing must not answer 0",
        )
    if seen.stale:
        s = seen.stale[0]
        after = "; it was the first value after a time in which nothing could be read" if s.after_a_hole else ""
        return tell(
            promised="an autoscaler takes replicas away by what is, not by what was",
            happened=happened,
            when=moment(history, s.event.t_ns),
            objects=[s.target],
            cause=f"the value of {s.metric} was of before requests waited{after}",
            change="let the store forget a sample sooner than requests can pile up (Prometheus' lookback is five "
            "minutes by default), or have the autoscaler lower a size only after it has read for a while",
        )
    if seen.slow:
        p = seen.slow[0]
        return tell(
            promised=f"waiting requests can be read within {spec.seen_s_max:.0f} s",
            happened=happened,
            when=f"they waited from {clock(history, p.start_ns)}",
            objects=[p.metric],
            cause="" if p.seen_ns is not None else f"the metrics API answered {p.read}",
            change="look at scrape interval, rate window and adapter, and at pods that are not scraped",
        )
    if seen.echoes and not seen.holes:
        first = min(seen.echoes, key=lambda e: e.t_ns)
        return tell(
            promised=f"what is read is at most {spec.seen_s_max:.0f} s old",
            happened=happened,
            when=f"first {moment(history, first.t_ns)}",
            objects=[first.metric],
            cause=f"{first.mean:.1f} a pod was read when no client waited for an answer: the value is an old one",
            change="look at scrape interval, rate window and adapter: what is served is not what is",
        )
    hole = max(seen.holes, key=lambda h: h.end_ns - h.start_ns)
    return tell(
        promised=f"the metric can be read at least every {spec.hole_s_max:.0f} s",
        happened=happened,
        when=f"since {clock(history, hole.start_ns)}",
        objects=[hole.metric],
        change="look at what stores the metric and at the adapter's own health in that time",
    )


def _evidence(history: History, seen: _Seen) -> tuple[Evidence, ...]:
    scale = history.run.time_scale
    found = [
        Evidence(
            f"objects:{b.event.index}", b.event.t_ns, f"{b.target} from {b.before} to {b.after} while {b.why}",
            {"target": b.target, "before": b.before, "after": b.after, **({MADE_UP: True} if b.fell_back else {})},
        )
        for b in seen.blind
    ]  # fmt: skip
    for s in seen.stale:
        lasted_ns = s.event.t_ns - s.waiting_since_ns
        text = f"{s.target} from {s.before} to {s.after} when requests had waited for {both(lasted_ns, scale)}"
        waiting: dict[str, Value] = {
            "target": s.target, "before": s.before, "after": s.after, "metric": s.metric,
            WAITING_S: scenario_s(lasted_ns, scale),
        }  # fmt: skip
        found.append(Evidence(f"objects:{s.event.index}", s.event.t_ns, text, waiting))
    for p in sorted(seen.judged, key=lambda p: (p not in seen.slow, p.start_ns)):
        when = f"read after {both(p.lag_ns, scale)}" if p.lag_ns is not None else f"never read: {p.read} was"
        text = f"requests waited for {both(p.end_ns - p.start_ns, scale)}, {when}"
        facts: dict[str, Value] = {"metric": p.metric, "read_until_then": p.read}
        found.append(Evidence(p.ref, p.start_ns, text, facts))
    for e in seen.echoes:
        text = f"read {e.mean:.1f} a pod when no client waited"
        found.append(Evidence(f"samples:{METRICS_SOURCE}/{e.metric}", e.t_ns, text, {"metric": e.metric}))
    for h in seen.holes:
        text = f"nothing was read for {both(h.end_ns - h.start_ns, scale)}"
        found.append(Evidence(h.ref, h.start_ns, text, {"metric": h.metric}))
    return tuple(found)
