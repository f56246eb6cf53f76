"""What an autoscaler was served of its metric, beside what clients went through: gaps, values of the past, zeros."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.checks.metrics_path import MADE_UP, WAITING_S
from harness.checks.units import count, listed
from harness.clock import NS_PER_S
from harness.diagnosis.case import SHOWN, Case
from harness.diagnosis.gone import process_gone
from harness.diagnosis.suspect import AUTOSCALER, KEDA, METRICS, Suspect
from harness.verdict import Evidence

_ON_THE_WAY = ("prometheus", "prometheus-adapter", "keda-operator", "keda-adapter")
"""Programs between a server's metrics and the autoscaler."""
_READ = frozenset(
    {"metrics_path", "scale_up", "controllers", "slo", "graceful_drain", "capacity", "scale_down", "baseline"}
)


def metrics(case: Case) -> Iterator[Suspect]:
    """By the finding of ``metrics_path``, which compares what was readable with what clients went through."""
    rows = case.evidence("metrics_path")
    if not rows:
        return
    blind = [r for r in rows if "after" in r.facts and "before" in r.facts]
    holes = [r for r in rows if r.text.startswith("nothing was read")]
    old = [r for r in rows if r.text.startswith("read ") and "when no client" in r.text]
    slow = [r for r in rows if "read_until_then" in r.facts]
    zero = [r for r in slow if r.facts["read_until_then"] == "0" and "never read" in r.text]
    names = listed(sorted({str(r.facts["metric"]) for r in rows if r.facts.get("metric")})) or "its metric"
    yield from _stale(case, [r for r in blind if WAITING_S in r.facts])
    blind = [r for r in blind if WAITING_S not in r.facts]
    made_up = [r for r in blind if r.facts.get(MADE_UP)]
    if made_up:
        yield _made_up(made_up)
        blind = [r for r in blind if not r.facts.get(MADE_UP)]
    if blind:
        yield _taken_for_0(blind, holes)
        holes = []  # what it should have borne
    if zero:
        yield _served_as_0(names, zero)
    if old:
        yield Suspect(
            METRICS,
            f"served values of {names} that were minutes old: {count(len(old), 'reading')} said that requests waited"
            " when none did",
            min(r.t_ns or 0 for r in (*old, *slow)),
            _READ,
            seen=tuple(old[:SHOWN]),
            change="look at scrape interval, rate window and adapter: what is served is not what is",
        )
    elif holes:
        yield Suspect(
            METRICS,
            f"served no value of {names}, {count(len(holes), 'hole')}: {holes[0].text}{_whose(case, holes)}",
            holes[0].t_ns or 0,
            _READ,
            seen=tuple(holes[:SHOWN]),
            change="look at what stores the metric and at the adapter's own health in that time",
        )
    elif slow and not zero and (late := [r for r in slow if "never read" in r.text or "read after" in r.text]):
        yield from _late_metric(case, names, late)


def _made_up(rows: Sequence[Evidence]) -> Suspect:
    first, last = rows[0], rows[-1]
    return Suspect(
        KEDA,
        f"gave the number of its fallback as if it had been measured: {first.facts['target']} went from"
        f" {first.facts['before']} to {last.facts['after']} while its source could not be read",
        first.t_ns or 0,
        _READ,
        seen=tuple(rows[:SHOWN]),
        change="let its fallback never lower a size (behavior: currentReplicasIfHigher), or do without one",
    )


def _taken_for_0(blind: Sequence[Evidence], holes: Sequence[Evidence]) -> Suspect:
    first = blind[0]
    act = (
        f"took a metric that could not be read for 0: it lowered {first.facts['target']} from"
        f" {first.facts['before']} to {first.facts['after']} while nothing could be read"
    )
    act += f" ({count(len(blind), 'time')})" if len(blind) > 1 else ""
    act += f"; {holes[0].text}" if holes else ""
    return Suspect(
        AUTOSCALER,
        act,
        first.t_ns or 0,
        _READ,
        seen=tuple(blind[:SHOWN]),
        change="let a missing value be missing: a query that finds nothing must not answer 0",
    )


def _served_as_0(names: str, zero: Sequence[Evidence]) -> Suspect:
    act = (
        f"served {names} as 0 while requests waited, {count(len(zero), 'time')}: a value that was not there was"
        " given as 0"
    )
    return Suspect(
        METRICS,
        act,
        zero[0].t_ns or 0,
        _READ,
        seen=tuple(zero[:SHOWN]),
        otherwise="who makes it 0, exporter, store or adapter, each one's own answer of that moment would tell",
        change="let what is missing be missing: no `or vector(0)`, no default in the adapter's query, and for KEDA"
        ' ignoreNullValues: "false"',
    )


def _stale(case: Case, rows: Sequence[Evidence]) -> Iterator[Suspect]:
    if not rows:
        return
    first = rows[0]
    act = f"handed on a value of the past: {first.text}{_whose(case, rows)}"
    yield Suspect(
        METRICS,
        act,
        first.t_ns or 0,
        _READ,
        seen=tuple(rows[:SHOWN]),
        change="let the store forget a sample sooner than requests can pile up, or have the autoscaler lower a size"
        " only after it has read for a while",
    )


def _whose(case: Case, rows: Sequence[Evidence]) -> str:
    """Which part of the path could not answer then. A hole begins with the last reading before it."""
    times = [row.t_ns or 0 for row in rows]
    until_ns = max(times) + 2 * NS_PER_S
    said = (process_gone(case, name, min(times), until_ns, f"{name}'s") for name in _ON_THE_WAY)
    return next(filter(None, said), "")


def _late_metric(case: Case, names: str, late: list[Evidence]) -> Iterator[Suspect]:
    never = [r for r in late if "never read" in r.text]
    if never:
        act = f"never showed in {names} that requests waited, {count(len(never), 'time')}: {never[0].text}"
        act += _whose(case, never)
        yield Suspect(METRICS, act, never[0].t_ns or 0, _READ, seen=tuple(never[:SHOWN]))
        return
    lag, limit = case.number("metrics_path", "lag_s_worst"), case.number("metrics_path", "seen_s_max")
    if isinstance(lag, int | float) and isinstance(limit, int | float) and lag > limit:
        act = f"showed in {names} only after {lag:.0f} s that requests waited (limit {limit:.0f} s)"
        act += _whose(case, late)
        change = "look at scrape interval, rate window and adapter, and at pods that are not scraped"
        yield Suspect(METRICS, act, late[0].t_ns or 0, _READ, seen=tuple(late[:SHOWN]), change=change)
