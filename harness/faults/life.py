"""The life of one injection, each step written to the history as it happens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from harness.faults.log import FaultLog
from harness.faults.port import Fault, Ground, NotObserved, fidelity_on
from harness.history.tables import FaultStage


@dataclass(frozen=True, slots=True)
class FaultResult:
    fault_id: str
    targets: tuple[str, ...]
    observed: str
    ended: str | None


async def run_fault(
    fault: Fault, fault_id: str, targets: Sequence[str], ground: Ground, log: FaultLog, note: str = ""
) -> FaultResult:
    """Injects, observes and outlasts. ``note`` goes with the ``planned`` line. An error is written and raised on;
    healing is left to the caller, because it must also follow a kill."""
    write = partial(
        log.write,
        fault_id,
        fault.name,
        targets=tuple(targets),
        fidelity=fidelity_on(type(fault), ground.target).value,
        disruptive=fault.disruptive,
    )
    write(FaultStage.PLANNED, detail=note)
    try:
        await fault.inject(ground, fault_id, targets)
        write(FaultStage.INJECTED)
        try:
            observed = await fault.observe(ground, targets)
        except NotObserved as error:
            write(FaultStage.NOT_OBSERVED, detail=error.message)
            raise
        write(FaultStage.OBSERVED, detail=observed)
        ended = await fault.outlast(ground, fault_id, targets)
    except NotObserved:
        raise
    except Exception as error:
        write(FaultStage.FAILED, detail=f"{type(error).__name__}: {error}")
        raise
    if ended is not None:
        write(FaultStage.ENDED, detail=ended)
    return FaultResult(fault_id, tuple(targets), observed, ended)
