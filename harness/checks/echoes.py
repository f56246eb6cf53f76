"""Readings of the past: a metric that says requests wait when none has for longer than the metric may be late."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from harness.checks.pressures import waited
from harness.checks.rows import Rows
from harness.history.autoscaler import Reading


@dataclass(frozen=True, slots=True)
class Echo:
    """A reading above the target. ``since_ns`` is when so many requests waited last, by the clients' own account; None
    where they never had."""

    metric: str
    t_ns: int
    mean: float
    since_ns: int | None


def echoes(metric: str, target: float, read: Sequence[Reading], table: Rows, late_ns: int) -> list[Echo]:
    """A server's queue holds no request that its client has not sent, or has a token of already: so a reading above
    what all clients together waited for, at any moment of the last ``late_ns``, can only be older than that."""
    found: list[Echo] = []
    known: dict[int, list[tuple[int, int]]] = {}
    for reading in read:
        if reading.mean <= target:
            continue
        pods = len(reading.pods)
        spans = known[pods] = known.get(pods) or waited(table, target * pods)
        before = bisect_right(spans, reading.t_ns, key=lambda span: span[0])
        last_ns = min(spans[before - 1][1], reading.t_ns) if before else None
        if last_ns is None or reading.t_ns - last_ns > late_ns:
            found.append(Echo(metric, reading.t_ns, reading.mean, last_ns))
    return found
