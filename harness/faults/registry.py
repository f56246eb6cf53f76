"""Every fault there is, by the name that experiments use. Actions, plan, docs and "did you mean" come from here."""

from __future__ import annotations

from harness.faults.catalogue.apply_objects import ApplyObjects
from harness.faults.catalogue.pause_load import PauseLoad
from harness.faults.catalogue.spot_interruption import SpotInterruption
from harness.faults.fault import Fault

FAULTS: dict[str, type[Fault]] = {
    fault.name: fault
    for fault in (
        SpotInterruption,
        ApplyObjects,
        PauseLoad,
    )
}
