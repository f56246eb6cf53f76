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
    """An ending that nobody knows is treated as an error."""
    run = history.run
    if run.ended == "completed":
        return Finding("run_complete", Role.VALIDITY, Status.PASS, "the run went to its planned end", 1)
    words = _WORDS.get(run.ended, f"the run ended as {run.ended!r}, which this version does not know")
    detail = f": {run.ended_detail}" if run.ended_detail else ""
    return Finding("run_complete", Role.VALIDITY, Status.FAIL, f"{words}{detail}", 1, {"ended": run.ended})
