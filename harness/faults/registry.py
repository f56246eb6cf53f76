"""Every fault there is, by the name that experiments use. ``--help``, docs and "did you mean" come from here."""

from __future__ import annotations

from harness.faults.apply_objects import ApplyObjects
from harness.faults.pause_load import PauseLoad
from harness.faults.port import Fault
from harness.faults.spot_interruption import SpotInterruption
from harness.faults.undo import CancelInterruption, DeleteObjects, ResumeLoad, ResumeProcess

FAULTS: dict[str, type[Fault]] = {
    "spot_interruption": SpotInterruption,
    "apply_objects": ApplyObjects,
    "pause_load": PauseLoad,
}

UNDONE_BY: dict[str, type[Fault]] = {
    CancelInterruption.kind: SpotInterruption,
    DeleteObjects.kind: ApplyObjects,
    ResumeProcess.kind: PauseLoad,
    ResumeLoad.kind: PauseLoad,
}
"""Which fault heals a journaled change, by the kind of its undo."""
