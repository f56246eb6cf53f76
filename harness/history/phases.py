"""The phases of a run, cut from what really happened: ``warm_up``, ``steady``, ``fault``, ``recovery``."""

from __future__ import annotations

from collections.abc import Sequence

from harness.clock import NS_PER_S
from harness.history.tables import FaultEvent, FaultStage, Phase

WARM_UP, STEADY, FAULT, RECOVERY = "warm_up", "steady", "fault", "recovery"
_OVER = frozenset({FaultStage.ENDED, FaultStage.HEALED, FaultStage.FAILED})


def compute_phases(
    load_start_ns: int, load_end_ns: int, warm_up_s: float, time_scale: float, faults: Sequence[FaultEvent]
) -> tuple[Phase, ...]:
    """Consecutive phases that cover the load's time; a phase that would be empty is left out.

    The fault phase spans from the first disruptive injection to the last end of an injected disruptive fault, or to
    the end of the load while one is still on. A fault that strikes during the warm-up ends the warm-up.
    """
    span = _fault_span(faults)
    fault_start, fault_end = span if span else (load_end_ns, load_end_ns)
    warm_end = load_start_ns + round(warm_up_s / time_scale * NS_PER_S)
    edges = [load_start_ns, min(warm_end, fault_start), fault_start, load_end_ns if fault_end is None else fault_end]
    edges = [max(load_start_ns, min(load_end_ns, edge)) for edge in edges] + [load_end_ns]
    names = (WARM_UP, STEADY, FAULT, RECOVERY)
    return tuple(
        Phase(name, start, end) for name, start, end in zip(names, edges, edges[1:], strict=False) if end > start
    )


def phase_of(phases: Sequence[Phase], t_ns: int) -> str:
    """The phase of a moment. A moment outside all of them counts to the nearest: an arrival planned after the load was
    cut short belongs to the phase in which it was cut."""
    if not phases:
        return ""
    for phase in phases:
        if t_ns < phase.end_ns:
            return phase.name
    return phases[-1].name


def _fault_span(faults: Sequence[FaultEvent]) -> tuple[int, int | None] | None:
    """First injection and last end; the end is None while a fault is on."""
    injected: dict[str, int] = {}
    over: dict[str, int] = {}
    for event in sorted((f for f in faults if f.disruptive), key=lambda f: f.t_ns):
        if event.stage is FaultStage.INJECTED:
            injected.setdefault(event.fault_id, event.t_ns)
        elif event.stage in _OVER and event.fault_id in injected:
            over.setdefault(event.fault_id, event.t_ns)
    if not injected:
        return None
    end = max(over.values()) if set(over) == set(injected) else None
    return min(injected.values()), end
