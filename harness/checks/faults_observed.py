"""Every planned fault was injected, and was seen to take effect by other means than the injection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.checks.units import count
from harness.history.tables import FaultEvent, FaultStage
from harness.verdict import Evidence, Finding, Role, Status

if TYPE_CHECKING:
    from harness.history.reader import History


def faults_observed(history: History) -> Finding:
    """An effect that came late, or showed on more than was picked, is said too. UNKNOWN when the history knows of no
    planned fault."""
    by_id: dict[str, list[FaultEvent]] = {}
    for event in history.faults:
        by_id.setdefault(event.fault_id, []).append(event)
    silent = [fault_id for fault_id in history.run.planned_faults if fault_id not in by_id]
    missing = [(events[0], _missed(events)) for events in by_id.values() if _missed(events)]
    evidence = tuple(
        Evidence(
            f"faults:{first.index}", first.t_ns, f"{first.fault_id} on {', '.join(first.targets) or 'nothing'}: {why}"
        )
        for first, why in missing
    )
    odd = [
        f"{e.fault_id} {said}" for e in history.faults if e.stage is FaultStage.OBSERVED and (said := _odd(e.detail))
    ]
    planned = len(by_id) + len(silent)
    numbers = {"faults": planned, "faults_observed": len(by_id) - len(missing)}
    troubles = [f"{first.fault_id} {why}" for first, why in missing] + [f"{name} left no trace" for name in silent]
    if not planned:
        status, sentence = Status.UNKNOWN, "the history knows of no planned fault, so nothing was put to the test"
    elif troubles:
        status = Status.FAIL
        sentence = f"{len(troubles)} of {count(planned, 'planned fault')} did not take effect: {'; '.join(troubles)}"
    else:
        status, sentence = Status.PASS, f"{count(len(by_id), 'planned fault')}, all injected and seen to take effect"
        if odd:
            sentence += f"; but {'; '.join(odd)}"
    return Finding("faults_observed", Role.VALIDITY, status, sentence, planned, dict(numbers), evidence)


def _missed(events: list[FaultEvent]) -> str:
    """Why this fault does not count as observed; empty when it does."""
    stages = {event.stage for event in events}
    detail = next((f" ({e.detail})" for e in events if e.stage in _TROUBLE and e.detail), "")
    if FaultStage.INJECTED not in stages:
        return f"was never injected{detail}"
    if FaultStage.OBSERVED not in stages:
        return f"was injected, but its effect was never seen{detail}"
    return ""


def _odd(detail: str) -> str:
    """What ``observe`` says of an effect that came late, or on more than was picked."""
    return "; ".join(part for part in detail.split("; ") if part.startswith(("late: ", "not picked, ")))


_TROUBLE = frozenset({FaultStage.FAILED, FaultStage.NOT_OBSERVED})
