"""Every change that the harness made to the cluster was undone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.checks.units import count, listed
from harness.history.tables import FaultStage
from harness.verdict import Evidence, Finding, Role, Status

if TYPE_CHECKING:
    from harness.history.reader import History


def change_undone(history: History) -> Finding:
    """UNKNOWN when faults were injected though the journal planned no undo: then nobody knows what is left."""
    run = history.run
    left = list(run.undo_left)
    injected = sum(1 for event in history.faults if event.stage is FaultStage.INJECTED)
    numbers = {"undo_planned": run.undo_planned, "undo_left": len(left)}
    evidence = tuple(Evidence("undo", None, text) for text in left)
    if left:
        status = Status.FAIL
        sentence = f"{len(left)} of {count(run.undo_planned, 'change')} of the harness were not undone: {listed(left)}"
    elif run.undo_planned:
        status, sentence = Status.PASS, f"{count(run.undo_planned, 'change')} of the harness, all undone"
    elif injected:
        status = Status.UNKNOWN
        sentence = f"{count(injected, 'fault')} injected, but the journal has no undo, so what is left is not known"
    else:
        status, sentence = Status.PASS, "the harness changed nothing that had to be undone"
    looked = max(1, run.undo_planned)  # reading a journal that says nothing was changed is a look too
    return Finding("change_undone", Role.VALIDITY, status, sentence, looked, dict(numbers), evidence)
