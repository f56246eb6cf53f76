"""Requests that were lost, each with its cause: what several checks and the diagnosis ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.checks.activity import Activity
from harness.checks.causes import Cause, causes_of
from harness.checks.dead_nodes import dead_nodes
from harness.checks.departures import pod_fates
from harness.checks.endings import set_aside
from harness.checks.rows import Mask, Request, Rows, rows_of
from harness.history.recording import once
from harness.history.tables import Outcome

if TYPE_CHECKING:
    from harness.history.reader import History


@once
def losses(history: History) -> tuple[tuple[Request, Cause], ...]:
    """Sent, and cut or refused by a pod; the unexplained first, then by their end. What the run's own early end cut
    and what was refused with no pod behind it stand apart."""
    table, fates = rows_of(history), pod_fates(history)
    lost = table.where(table.cut & table.sent & ~set_aside(history, table) & ~refused_without_pod(table))
    found = causes_of(lost, fates, history.run.time_scale, dead_nodes(history, fates), Activity(table))
    pairs = list(zip(lost, found, strict=True))
    pairs.sort(key=lambda pair: (pair[1].explained, pair[0].end_ns or 0, pair[0].request_id))
    return tuple(pairs)


def refused_without_pod(table: Rows) -> Mask:
    """503 with no pod behind it: turned away at the door."""
    nobody: Mask = (table.numbers("status") == 503) & table.missing("pod")
    return table.among("outcome", {Outcome.HTTP_5XX}) & nobody
