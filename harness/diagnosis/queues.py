"""Queues that gave too much, held somebody back beside free quota, or let GPUs be held that they took away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.checks.quota import holding, named, walked
from harness.checks.quota_books import owner
from harness.checks.quota_spans import Span
from harness.checks.quota_stuck import gated, put_off, unadmitted
from harness.diagnosis.case import SHOWN, Case
from harness.diagnosis.gone import process_gone
from harness.diagnosis.suspect import QUEUES, Suspect
from harness.history.lives import condition
from harness.verdict import Evidence

_BREAKS = frozenset({"quota", "recovery", "baseline"})
_LONG_S = 60.0
"""What is over sooner is the queue at its work."""
_PROGRAM = "kueue"


def queues(case: Case) -> Iterator[Suspect]:
    workloads = case.of("Workload")
    over, idle = walked(case.history, workloads)
    names = named(workloads)
    for spans, say, change in (
        (over, "{name} {what}", "see who else writes admissions, and whether two queues count the same quota"),
        (idle, "left {name} without quota: it {what}", "see its log of that workload, and whether it runs at all"),
        (
            list(holding(case.history, workloads)),
            "did not get back what it took away: {name} {what}",
            "see whether whoever owns the pod suspends it, and the pod's own grace",
        ),
        (
            gated(case.history, workloads),
            "admitted {name} and did not let it be scheduled: it {what}",
            "see its log of that pod, and whether its webhooks and its pod integration run",
        ),
        (
            unadmitted(case.history, workloads, names),
            "kept quota for {name}, which {what}",
            "see the controller of that admission check: Kueue waits for its answer for ever",
        ),
        (
            put_off(case.history, workloads, names),
            "left {name} out of its queue: it {what}",
            "see requeuingStrategy, and what the check says that asked for it",
        ),
    ):
        if long := [span for span in spans if span.length_ns > case.ns(_LONG_S)]:
            yield _suspect(case, long, say, change)


def _suspect(case: Case, spans: Sequence[Span], say: str, change: str) -> Suspect:
    worst = max(spans, key=lambda span: span.length_ns)
    act = f"{say.format(name=worst.name, what=worst.what)} for {case.span(worst.length_ns)}"
    act += f" ({len(spans) - 1} more such)" if len(spans) > 1 else ""
    away = process_gone(case, _PROGRAM, worst.start_ns, worst.end_ns)
    said = "" if away else _said_of(case, worst)
    return Suspect(
        QUEUES,
        act + away + said,
        min(span.start_ns for span in spans),
        _BREAKS,
        seen=tuple(
            Evidence(f"objects:{s.name}", s.start_ns, f"{s.name} {s.what} for {case.span(s.length_ns)}")
            for s in spans[:SHOWN]
        ),
        change="run more than one replica of it, and alert when none of them leads" if away else change,
    )


def _said_of(case: Case, span: Span) -> str:
    """What the queue itself last said of the one that waits."""
    for workload in case.of("Workload"):
        if "{} {}".format(*owner(workload)).strip() == span.name:
            text = condition(workload.last, "QuotaReserved").get("message")
            return f"; it said last: {text}" if text else ""
    return ""
