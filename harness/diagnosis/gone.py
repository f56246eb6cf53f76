"""That a component could not do its work, for its own process had ended or stood still: a fault did that to it."""

from __future__ import annotations

from harness.diagnosis.case import Case
from harness.history.tables import FaultStage

_STOPPED = "component_stopped"
_HALTED = "part_stopped"
"""Of a controller that is a part of the embedded cluster: it stands still."""
_STILL = "stands still"
"""What ``component_stopped`` says that it saw of a frozen one."""


def process_gone(case: Case, program: str, start_ns: int, end_ns: int, whose: str = "its", part: str = "") -> str:
    """Words to go on with, where that was so at some time between the two; empty elsewhere. ``part``: what plays the
    program in the embedded cluster."""
    began_ns, verb = None, "had ended"
    for fault in case.history.faults:
        halted = fault.fault == _HALTED and part in fault.targets
        if not halted and (fault.fault != _STOPPED or program not in fault.targets):
            continue
        if fault.stage is FaultStage.INJECTED:
            began_ns, verb = fault.t_ns, "stood still" if halted else "had ended"
        elif fault.stage is FaultStage.OBSERVED and _STILL in fault.detail:
            verb = "stood still"
        elif fault.stage in (FaultStage.ENDED, FaultStage.HEALED) and began_ns is not None:
            if began_ns <= end_ns and fault.t_ns >= start_ns:
                return f"; {whose} process {verb} from {case.at(began_ns)} to {case.at(fault.t_ns)} of the load"
            began_ns = None
    return ""
