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
PROMISED, HAPPENED, WHEN, OBJECTS, CAUSE, CHANGE, CLASS = LABELS
_OVER = frozenset({FaultStage.ENDED, FaultStage.HEALED, FaultStage.FAILED})
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


def story_parts(story: str) -> dict[str, str]:
    """Its parts by label, without their full stop."""
    found: dict[str, str] = {}
    places = sorted((at, label) for label in LABELS if (at := story.find(f"{label} ")) >= 0)
    for (at, label), after in zip(places, [*places[1:], (len(story), "")], strict=False):
        found[label] = story[at + len(label) : after[0]].strip().removesuffix(".")
    return found


def retold(story: str, cause: str, change: str) -> str:
    """The same story with the cause that the whole of the run bears out, which one check alone does not see."""
    parts = story_parts(story)
    own = parts.get(CAUSE, NOT_TOLD)
    seen = f"{parts.get(HAPPENED, '')}; seen by this check: {own}" if own != NOT_TOLD else parts.get(HAPPENED, "")
    parts |= {HAPPENED: seen, CAUSE: cause.rstrip("."), CHANGE: change.rstrip(".")}
    return " ".join(f"{label} {parts[label]}." for label in LABELS if parts.get(label))


def who(life: Life) -> str:
    """``HorizontalPodAutoscaler inference/llm``, so that nobody has to guess which of them."""
    return f"{life.kind} {life.namespace}/{life.name}" if life.namespace else f"{life.kind} {life.name}"


def moment(history: History, t_ns: int | None) -> str:
    """``at 331.2 s of the load, 11.2 s after spot_interruption-1 struck``."""
    return f"at {clock(history, t_ns)}" if t_ns is not None else ""


def clock(history: History, t_ns: int) -> str:
    """A moment on the load's clock, and on that of the fault in whose course it lies: what is later need not have
    anything to do with it."""
    scale = history.run.time_scale
    text = f"{scenario_s(t_ns - history.run.load_start_ns, scale):.1f} s of the load"
    struck = last_fault(history, t_ns)
    return f"{text}, {both(t_ns - struck.t_ns, scale)} after {struck.fault_id} struck" if struck else text


def last_fault(history: History, t_ns: int) -> FaultEvent | None:
    """The disruptive fault that was injected last before a moment, and was not over by then."""
    over = {f.fault_id for f in history.faults if f.stage in _OVER and f.t_ns < t_ns}
    begun = (f for f in history.faults if f.disruptive and f.stage is FaultStage.INJECTED and f.t_ns <= t_ns)
    struck = [fault for fault in begun if fault.fault_id not in over]
    return max(struck, key=lambda fault: fault.t_ns, default=None)
