"""Which requests the run itself ended, so that nobody takes the harness's own stop for the system's fault."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from harness.checks.rows import Mask, Rows
from harness.checks.units import NS_PER_S
from harness.history.tables import Outcome

if TYPE_CHECKING:
    from harness.history.reader import History

END_MARKS = frozenset({"ended", "interrupted", "child_died", "aborted", "error"})
"""Marks by which the supervisor dates an early end of a run."""
_NOTICED_NS = 2 * NS_PER_S
"""A dead child is noticed this much later at most, and what it carried fell with it."""
_STOPPED_NS = 5 * NS_PER_S
"""The same, with the time in which the load is stopped after that, which is when it has ended."""


def ended_early_ns(history: History) -> int | None:
    """From when on an early end of the run may have cut streams; None for a run that was completed, or undated."""
    if history.run.ended == "completed":
        return None
    marked = [mark.t_ns for mark in history.marks if mark.name in END_MARKS]
    if history.run.ended == "child_died":
        return min(marked) - _NOTICED_NS if marked else history.run.load_end_ns - _STOPPED_NS
    return min(marked, default=None)


def set_aside(history: History, table: Rows) -> Mask:
    """Requests that the harness's own early end cut short; they prove nothing."""
    if history.run.ended == "completed":
        return np.zeros(len(table), dtype=np.bool_)
    aside = table.among("outcome", {Outcome.UNFINISHED})
    if (since := ended_early_ns(history)) is not None:
        aside |= table.cut & (table.numbers("end_ns") >= since)
    return aside
