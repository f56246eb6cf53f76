"""What a fail says in one paragraph: what was promised, what happened, when, to whom, why, and what to change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.checks.units import both, listed, scenario_s
from harness.history.tables import FaultEvent, FaultStage

if TYPE_CHECKING:
    from harness.history.lives import Life
    from harness.history.reader import History

LABELS = ("Promised:", "What happened:", "When:", "Objects:", "First cause:", "What to change:", "Failure class:")
NOT_TOLD = "the history does not tell why"
"""For a cause that nothing recorded bears out."""


def tell(
    *, promised: str, happened: str, when: str = "", objects: Sequence[str] = (), cause: str = "", change: str = ""
) -> str:
    """One paragraph. A part that is not known is left out, but the cause, which is then said to be unknown."""
    happened, cause = happened.rstrip("."), cause.rstrip(".")
    parts = [
        f"Promised: {promised}.",
        f"What happened: {happened}.",
        f"When: {when}." if when else "",
        f"Objects: {listed(list(dict.fromkeys(objects)))}." if objects else "",
        f"First cause: {cause or NOT_TOLD}.",
        f"What to change: {change}." if change else "",
    ]
    return " ".join(part for part in parts if part)


def who(life: Life) -> str:
    """``HorizontalPodAutoscaler inference/llm``, so that nobody has to guess which of them."""
    return f"{life.kind} {life.namespace}/{life.name}" if life.namespace else f"{life.kind} {life.name}"


def moment(history: History, t_ns: int | None) -> str:
    """``at 331.2 s of the load, 11.2 s after spot_interruption-1 struck``."""
    return f"at {clock(history, t_ns)}" if t_ns is not None else ""


def clock(history: History, t_ns: int) -> str:
    """A moment on the load's clock, and on the clock of the fault that struck last before it."""
    scale = history.run.time_scale
    text = f"{scenario_s(t_ns - history.run.load_start_ns, scale):.1f} s of the load"
    struck = last_fault(history, t_ns)
    return f"{text}, {both(t_ns - struck.t_ns, scale)} after {struck.fault_id} struck" if struck else text


def last_fault(history: History, t_ns: int) -> FaultEvent | None:
    """The disruptive fault that was injected last before a moment."""
    struck = [f for f in history.faults if f.disruptive and f.stage is FaultStage.INJECTED and f.t_ns <= t_ns]
    return max(struck, key=lambda fault: fault.t_ns, default=None)
