"""The run went to its planned end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.verdict import Finding, Role, Status

if TYPE_CHECKING:
    from harness.history.reader import History

_WORDS = {
    "interrupted": "the run was interrupted",
    "child_died": "a process of the run died",
    "aborted": "a stop condition ended the run early",
    "error": "the harness ended the run with an error of its own",
}


def run_complete(history: History) -> Finding:
    """UNKNOWN for an ending that this version does not know."""
    run = history.run
    if run.ended == "completed":
        return Finding("run_complete", Role.VALIDITY, Status.PASS, "the run went to its planned end", 1)
    status = Status.FAIL if run.ended in _WORDS else Status.UNKNOWN
    words = _WORDS.get(run.ended, f"the run ended as {run.ended!r}, which this version does not know")
    detail = f": {run.ended_detail}" if run.ended_detail else ""
    return Finding("run_complete", Role.VALIDITY, status, f"{words}{detail}", 1, {"ended": run.ended})
