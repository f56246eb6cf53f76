"""What all suspects of lost requests say alike: since when, who is hit, and which rows show it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.checks.rows import Request
from harness.diagnosis.case import SHOWN, Case, quote
from harness.diagnosis.scope import around_the_fault, pods_hit
from harness.diagnosis.suspect import LOST_STREAMS, Suspect

if TYPE_CHECKING:
    from harness.checks.causes import Cause

Lost = Sequence[tuple[Request, "Cause"]]


def suspect_of(
    case: Case, own: Lost, component: str, act: str, *, among: Sequence[str] = (), **more: object
) -> Suspect:
    """What all of them share: since when, who is hit, which rows show it."""
    pods = {row.pod for row, _ in own if row.pod}
    scope = pods_hit(case, pods, among or list(case.rows.places("pod")))
    before = around_the_fault(case, [cause.fell_ns or 0 for _, cause in own])
    seen = tuple(quote(row, f"{row.outcome} on {row.pod or 'no named pod'}: {c.detail}") for row, c in own[:SHOWN])
    fields = {
        "since_ns": min(c.fell_ns or 0 for _, c in own),
        "breaks": LOST_STREAMS,
        "seen": seen,
        "scope": f"{scope}; {before}" if scope and before else scope or before,
        "requests": frozenset(row.request_id for row, _ in own),
    } | more
    return Suspect(component, act, **fields)  # type: ignore[arg-type]  # the fields are those of a suspect
