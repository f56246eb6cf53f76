"""The system was in its steady state before the fault."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.verdict import Evidence, Finding, Role, Status

if TYPE_CHECKING:
    from harness.history.reader import History

MARK = "steady_state_before"


def steady_before(history: History) -> Finding:
    """UNKNOWN when the hypothesis was never evaluated, or evaluating it failed."""
    marks = [mark for mark in history.marks if mark.name == MARK]
    evidence = tuple(Evidence(f"marks:{m.index}", m.t_ns, f"{m.name}: {m.value} {m.detail}".rstrip()) for m in marks)
    values = {mark.value for mark in marks}
    if not marks:
        status, sentence = Status.UNKNOWN, "the steady-state hypothesis was not evaluated before the fault"
    elif values == {"met"}:
        status, sentence = Status.PASS, "the steady-state hypothesis was met before the fault"
    elif "not_met" in values:
        detail = next(m.detail for m in marks if m.value == "not_met")
        status = Status.FAIL
        sentence = f"the steady-state hypothesis was not met before the fault{': ' + detail if detail else ''}"
    else:
        detail = next(m.detail for m in marks if m.value != "met")
        status = Status.UNKNOWN
        sentence = (
            f"the steady-state hypothesis could not be evaluated before the fault{': ' + detail if detail else ''}"
        )
    return Finding("steady_before", Role.VALIDITY, status, sentence, len(marks), {}, evidence)
