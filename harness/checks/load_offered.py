"""The planned load was really offered: every request went out, and at its time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from harness.checks.machine_did_not_stall import stalls
from harness.checks.rows import Numbers, Request, Rows, nearest_rank, rows_of
from harness.checks.units import NS_PER_MS, count
from harness.history.tables import Outcome
from harness.verdict import Evidence, Finding, Role, Status, Value

if TYPE_CHECKING:
    from harness.history.reader import History

LAG_MS_MAX = 1000.0
"""A single send later than this is no open loop any more, however good the p99 is."""
_EARLY_NS = NS_PER_MS
"""The load waits until the time has come, so a send can only be early on another clock."""
_EVIDENCE_ROWS = 20
_BUSY = 0.7
"""Of a core: a load process that used more than this in some second may have been late by its own work."""
_EASY = 0.5
"""Of a core: what each process should need at most, so that a send rarely waits behind the reading of a token."""


def load_offered(history: History) -> Finding:
    """UNKNOWN when nothing was planned. That nothing was sent, though planned, is a failure of it.

    Lateness that a recorded stall of the whole machine explains is forgiven here: it is ``machine_did_not_stall``'s
    to say. A turn that was not sent because its session's predecessor had not ended is the system's doing, not the
    generator's, and stands apart. How many clients hung up of those that were to is told, and judges nothing.
    """
    table = rows_of(history)
    sent = np.flatnonzero(table.sent)
    not_sent = table.among("outcome", {Outcome.NOT_SENT})
    held = not_sent & table.among("reason", {"session"})
    unsent = table.where(not_sent & ~held)
    limit_ms = history.run.load_lag_limit_ms
    lags = own_lags_ns(table, stalls(history))[sent] / NS_PER_MS
    ordered = lags.tolist()
    p99, most = nearest_rank(lags, 0.99), max(ordered, default=None)
    late = sent[lags > limit_ms]
    busiest = _sample_max(history, "cpu_ratio")
    would_do = None if busiest is None else math.ceil(history.run.load_workers * busiest / _EASY)
    numbers: dict[str, Value] = {
        "planned": len(table),
        "sent": len(sent),
        "not_sent": len(unsent),
        "not_sent_session": int(held.sum()),
        "lag_ms_mean": sum(ordered) / len(ordered) if ordered else None,
        "lag_ms_p99": p99,
        "lag_ms_max": most,
        "lag_ms_p99_limit": limit_ms,
        "sent_late": len(late),
        "load_workers": history.run.load_workers,
        "load_workers_would_do": would_do,
        "load_cpu_ratio_max": busiest,
        "load_loop_gap_ms_max": _sample_max(history, "loop_gap_ms_max"),
    }
    early = table.where(table.numbers("sent_ns") < table.numbers("intended_ns") - _EARLY_NS)
    status, sentence = _judge(len(table), len(sent), unsent, len(late), limit_ms, p99, most)
    if status is Status.FAIL and busiest is not None and len(late):
        sentence += f"; {_advice(history.run.load_workers, busiest, would_do)}"
    if early and status is Status.PASS:
        status = Status.FAIL
        sentence = f"{count(len(early), 'request')} went out before their time, so the clocks of this run do not agree"
    over_ms = lags[lags > limit_ms]
    worst = np.argsort(-over_ms, kind="stable")[:_EVIDENCE_ROWS]
    hang_ups, said = _hang_ups(table)
    numbers |= hang_ups
    evidence = (
        *(Evidence(row.ref, row.sent_ns, "sent before its time") for row in early[:_EVIDENCE_ROWS]),
        *(
            Evidence(row.ref, row.sent_ns, f"sent {lag_ms:.0f} ms after its time")
            for row, lag_ms in zip(table.where(late[worst]), over_ms[worst].tolist(), strict=True)
        ),
        *(
            Evidence(row.ref, row.intended_ns, f"not sent: {row.reason or 'no reason given'}")
            for row in unsent[:_EVIDENCE_ROWS]
        ),
    )
    return Finding("load_offered", Role.VALIDITY, status, sentence + said, len(sent), numbers, evidence)


def _judge(
    planned: int, sent: int, unsent: Sequence[Request], late: int, limit_ms: float,
    p99: float | None, most: float | None,
) -> tuple[Status, str]:  # fmt: skip
    if not planned:
        return Status.UNKNOWN, "no load was planned"
    if p99 is None or most is None:
        return Status.FAIL, f"none of {planned} planned requests was sent"
    lag = f"sends were late by {p99:.0f} ms at p99 (limit {limit_ms:.0f} ms) and {most:.0f} ms at most"
    if unsent:
        return Status.FAIL, f"{count(len(unsent), 'request')} of {planned} planned were never sent; {lag}"
    if p99 > limit_ms or most > max(LAG_MS_MAX, limit_ms):
        return Status.FAIL, f"the load was not offered as planned: {late} of {sent} sends over the limit; {lag}"
    return Status.PASS, f"{sent} of {planned} planned requests were sent, and {lag}"


def _hang_ups(table: Rows) -> tuple[dict[str, Value], str]:
    """A client that was to hang up stays where its answer is whole before: how many of them did what was planned."""
    planned = (table.numbers("hang_up_tokens") > 0) | (table.numbers("hang_up_ns") > 0)
    if not planned.any():
        return {}, ""
    happened = int((planned & table.among("outcome", {Outcome.ABORTED_BY_CLIENT})).sum())
    answered = int((planned & table.among("outcome", {Outcome.OK})).sum())
    said = f"; {happened} of {count(int(planned.sum()), 'planned hang-up')} happened"
    if answered:
        said += f" ({answered} answered before)"
    return {"hang_ups_planned": int(planned.sum()), "hang_ups": happened, "hang_ups_answered_before": answered}, said


def _advice(workers: int, busiest: float, would_do: int | None) -> str:
    """Whether more processes would have sent it in time, from how busy those were that sent it late."""
    used = f"a load process used up to {busiest:.0%} of a core"
    if busiest < _BUSY:
        return f"{used}, so more of them would not help: the machine did not let them run"
    return f"{used}: with send.workers: {would_do} (now {workers}) each would need half of one, if the machine has them"


def own_lags_ns(table: Rows, stood_still: Sequence[tuple[int, int]]) -> Numbers:
    """The lateness of each send, without the time in which the whole machine stood still; never negative. NaN for what
    was not sent."""
    intended, sent = table.numbers("intended_ns"), table.numbers("sent_ns")
    lags = np.maximum(0.0, sent - intended)
    # After a stall the backlog goes out one by one, so a send is also forgiven what it queued behind the stall.
    forgiven = np.zeros(len(lags))
    for start, end in stood_still:
        forgiven += np.maximum(0.0, np.minimum(end, sent) - np.maximum(start, intended))
    return np.where(lags > NS_PER_MS, np.maximum(0.0, lags - forgiven), lags)


def _sample_max(history: History, name: str) -> float | None:
    table = history.samples
    values = table[(table["source"] == "load") & (table["name"] == name)]["value"]
    return None if values.empty else float(values.max())
