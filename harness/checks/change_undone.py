"""Every change that the harness made to the cluster was undone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.checks.units import count, listed
from harness.history.tables import FaultEvent, FaultStage
from harness.verdict import Evidence, Finding, Role, Status

if TYPE_CHECKING:
    from harness.history.reader import History


def change_undone(history: History) -> Finding:
    """Undone, and seen to be: what was taken back but still shows its effect counts as left. UNKNOWN when faults were
    injected though the journal planned no undo: then nobody knows what is left."""
    run = history.run
    left = list(run.undo_left)
    injected = sum(1 for event in history.faults if event.stage is FaultStage.INJECTED)
    shows = _still_showing(history)
    numbers = {"undo_planned": run.undo_planned, "undo_left": len(left), "effects_left": len(shows)}
    evidence = (
        *(Evidence("undo", None, text) for text in left),
        *(Evidence(f"faults:{e.index}", e.t_ns, f"{e.fault_id}: {e.detail}") for e in shows),
    )
    if not left and shows:
        status = Status.FAIL
        said = listed([f"{e.fault_id} {e.detail}" for e in shows])
        sentence = f"{count(len(shows), 'fault')} of the harness undone, but not seen to be gone: {said}"
    elif left:
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


def _still_showing(history: History) -> list[FaultEvent]:
    """The last word on each fault whose effect was looked for after it was undone, and was still there."""
    last = {
        e.fault_id: e for e in history.faults if e.stage in (FaultStage.HEAL_OBSERVED, FaultStage.HEAL_NOT_OBSERVED)
    }
    return [event for event in last.values() if event.stage is FaultStage.HEAL_NOT_OBSERVED]
