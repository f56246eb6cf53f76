"""Requests as a table that a reader can filter: first those that were lost, failed or late, then a sample of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.checks.causes import UNEXPLAINED
from harness.checks.rows import Request, rows_of
from harness.checks.slo import METRICS
from harness.checks.units import scenario_s
from harness.printable import line
from harness.verdict import Verdict

if TYPE_CHECKING:
    from harness.history.reader import History

STREAMS = 3_000
"""At most so many are in the page; all are in history/requests.parquet."""
_WHY = 160
COLUMNS = ("request", "planned at, s", "phase", "outcome", "why", "pod", "node", "TTFT, ms", "TPOT, ms", "tokens")


@dataclass(frozen=True, slots=True)
class Trouble:
    """A request that was lost, failed or late, and why. ``cause`` is that of a lost one, from the cluster's side."""

    row: Request
    why: str
    cause: str | None

    @property
    def unexplained(self) -> bool:
        return self.cause == UNEXPLAINED


def lost_causes(verdict: Verdict) -> dict[str, str]:
    """The cause of each lost stream that ``graceful_drain`` counts, by the request's ref."""
    return {
        row.ref: str(row.facts["cause"])
        for finding in verdict.findings
        for row in finding.evidence
        if finding.check == "graceful_drain" and row.facts.get("cause")
    }


def latency_limits(verdict: Verdict) -> dict[str, float]:
    """The loosest limit of each metric that an ``slo`` finding judged by, read from its numbers."""
    limits: dict[str, float] = {}
    for finding in verdict.findings:
        for key, value in finding.numbers.items() if finding.check == "slo" else ():
            metric = key.removesuffix("_limit").rpartition("_")[0]
            if key.endswith("_limit") and metric in METRICS and isinstance(value, int | float):
                limits[metric] = max(float(value), limits.get(metric, 0.0))
    return limits


def troubles(history: History, verdict: Verdict) -> list[Trouble]:
    """The lost first, of them those that nothing explains; then the failed, then the late."""
    causes, limits = lost_causes(verdict), latency_limits(verdict)
    rows = rows_of(history)
    late = np.zeros(len(rows), dtype=np.bool_)
    for metric, limit in limits.items():
        late |= rows.latency(metric) > limit
    lost = np.isin(
        rows.numbers("request_id"),
        [int(number) for ref in causes if (number := ref.removeprefix("requests:")).isdecimal()],
    )
    found = [
        Trouble(row, _why(row, limits, causes.get(row.ref)), causes.get(row.ref))
        for row in rows.where(~rows.hung_up_by_plan & (~rows.ok | late | lost))
    ]
    found.sort(key=lambda t: (not t.unexplained, t.cause is None, t.row.ok, t.row.intended_ns))
    return found


def _why(row: Request, limits: Mapping[str, float], cause: str | None) -> str:
    if cause:
        return cause
    if not row.ok:
        return row.reason or "no reason recorded"
    late = [(m, value) for m, limit in limits.items() if (value := getattr(row, m)) is not None and value > limit]
    return ", ".join(f"late: {m} {value:.0f} over {limits[m]:.0f}" for m, value in late)


def stream_rows(history: History, found: Sequence[Trouble]) -> list[list[Any]]:
    """By ``COLUMNS``, and at the end 2 for a lost or failed request, 1 for a late one, 0 for another. Evenly thinned
    where there are too many, the good ones first."""
    bad = found[:: 1 + len(found) // STREAMS]
    rows = rows_of(history)
    rest = np.flatnonzero(~np.isin(rows.numbers("request_id"), [t.row.request_id for t in found]))
    room = max(0, STREAMS - len(bad))
    good = rest[:: max(1, -(-len(rest) // room))] if room else rest[:0]
    return [
        *(_cells(history, t.row, t.why, 1 if t.row.ok else 2) for t in bad),
        *(_cells(history, row, "", 0) for row in rows.where(good)),
    ]


def _cells(history: History, row: Request, why: str, trouble: int) -> list[Any]:
    at_s = scenario_s(row.intended_ns - history.run.load_start_ns, history.run.time_scale)
    return [
        row.request_id,
        round(at_s, 1),
        row.phase,
        row.outcome,
        line(why, _WHY),
        line(row.pod or "", 80),
        line(row.node or "", 80),
        None if row.ttft_ms is None else round(row.ttft_ms),
        None if row.tpot_ms is None else round(row.tpot_ms, 1),
        row.output_tokens,
        trouble,
    ]
