"""Actions for experiments: ``module: harness.run.chaos.actions``. All times are scenario seconds.

Each waits for its scenario second ``after_s``, counted from the load's start, injects its fault, and returns once the
fault was seen to take effect and its own course is over. What it raises is written to the history as well.
"""

# No postponed annotations here: `chaos discover` reads the types of the signatures as they are.

from typing import Any, TypeVar

from pydantic import ValidationError

from harness.errors import BadInput, HarnessError
from harness.faults.apply_objects import ApplyObjects
from harness.faults.heal import HealReport, open_ground
from harness.faults.life import FaultResult
from harness.faults.log import FaultLog
from harness.faults.pause_load import PauseLoad
from harness.faults.port import Fault
from harness.faults.spot_interruption import SpotInterruption
from harness.kube.port import ApiError
from harness.run.chaos import control
from harness.run.chaos.context import RunContext, current
from harness.run.chaos.lib import ActivityFailed, InterruptExecution
from harness.run.playing import Play, play
from harness.spec import actions as spec
from harness.targets.manifests import read_manifests

__all__ = ["apply_objects", "heal", "pause_load", "spot_interruption"]

Arguments = TypeVar("Arguments", bound=spec.ActionArguments)


def spot_interruption(
    after_s: float = 0.0, nodes: dict[str, Any] | None = None, notice_s: float = 120.0
) -> dict[str, Any]:
    """The cloud takes ``nodes`` (``{selector, count}``) away, ``notice_s`` after saying so."""
    arguments = _read(spec.SpotInterruption, after_s=after_s, nodes=nodes or {}, notice_s=notice_s)
    fault = SpotInterruption(arguments.nodes.selector, arguments.nodes.count, arguments.notice_s)
    return _play(fault, arguments.after_s, selector=arguments.nodes.selector, count=arguments.nodes.count)


def apply_objects(after_s: float = 0.0, manifest: str = "") -> dict[str, Any]:
    """The objects of one manifest file arrive; the rollback ``heal`` deletes them again."""
    arguments = _read(spec.ApplyObjects, after_s=after_s, manifest=manifest)
    try:
        objects = tuple(read_manifests([current().find(arguments.manifest)]))
    except HarnessError as error:
        raise ActivityFailed(str(error)) from error
    return _play(ApplyObjects(objects), arguments.after_s)


def pause_load(after_s: float = 0.0, hold_s: float = 30.0) -> dict[str, Any]:
    """The load generator of this run is stopped for ``hold_s``, to prove that the harness notices."""
    arguments = _read(spec.PauseLoad, after_s=after_s, hold_s=hold_s)
    return _play(PauseLoad(arguments.hold_s), arguments.after_s)


def heal() -> dict[str, Any]:
    """Undoes whatever the harness has changed so far. Idempotent, and not to be interrupted."""
    try:
        report: HealReport = control.heal(current())
    except HarnessError as error:
        raise ActivityFailed(str(error)) from error
    if not report.clean:
        raise ActivityFailed("; ".join((*report.errors, *(f"left: {line}" for line in report.left))))
    return {"planned": report.planned, "undone": list(report.undone)}


def _read(kind: type[Arguments], **values: Any) -> Arguments:
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        said = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise ActivityFailed(f"{kind.__name__}: {said}") from error


def _play(fault: Fault, after_s: float, *, selector: str | None = None, count: int = 0) -> dict[str, Any]:
    """``selector`` and ``count`` are given where targets are nodes."""
    try:
        run = current()
        fault_id = control.current_fault_id()
        if fault_id is None:
            raise BadInput(f"{fault.name} is an action of the method; it has no place elsewhere")
        result = run.interruption.run(_play_async(run, fault, fault_id, after_s, selector, count))
    except InterruptExecution:
        raise
    except (HarnessError, ApiError, OSError) as error:
        raise ActivityFailed(str(error) or type(error).__name__) from error
    return {
        "fault_id": result.fault_id,
        "targets": list(result.targets),
        "observed": result.observed,
        "ended": result.ended,
    }


async def _play_async(
    run: RunContext, fault: Fault, fault_id: str, after_s: float, selector: str | None, count: int
) -> FaultResult:
    late_s = await run.wait_for_scenario_s(after_s)
    planned = run.plan.targets.get(fault_id, ())
    async with open_ground(run.run_dir, run.connection, run.clock) as ground:
        what = Play(fault, fault_id, run.plan.seed, planned, selector, count)
        return await play(what, ground, FaultLog(run.run_dir, run.clock), late_s)
