"""That a component could not do its work, for its own process had ended or stood still: a fault did that to it."""

from __future__ import annotations

from harness.diagnosis.case import Case
from harness.history.tables import FaultStage

_STOPPED = "component_stopped"


def process_gone(case: Case, program: str, start_ns: int, end_ns: int) -> str:
    """Words to go on with, where that was so at some time between the two; empty elsewhere."""
    began_ns = None
    for fault in case.history.faults:
        if fault.fault != _STOPPED or program not in fault.targets:
            continue
        if fault.stage is FaultStage.INJECTED:
            began_ns = fault.t_ns
        elif fault.stage in (FaultStage.ENDED, FaultStage.HEALED) and began_ns is not None:
            if began_ns <= end_ns and fault.t_ns >= start_ns:
                return f"; its process had ended from {case.at(began_ns)} to {case.at(fault.t_ns)} of the load"
            began_ns = None
    return ""
