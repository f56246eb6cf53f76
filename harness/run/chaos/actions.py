"""Actions for experiments: ``module: harness.run.chaos.actions``. All times are scenario seconds.

Each waits for its scenario second ``after_s``, counted from the load's start, injects its fault, and returns once the
fault was seen to take effect and its own course is over. What it raises is written to the history as well.
"""

# No postponed annotations here: `chaos discover` reads the types of the signatures as they are.

import asyncio
import logging
from random import Random
from typing import Any, TypeVar

from pydantic import ValidationError

from harness.errors import BadInput, HarnessError
from harness.faults.apply_objects import ApplyObjects
from harness.faults.fleet import read_fleet
from harness.faults.guards import check_targets
from harness.faults.heal import HealReport, open_ground
from harness.faults.life import FaultResult, run_fault
from harness.faults.log import FaultLog
from harness.faults.pause_load import PauseLoad
from harness.faults.pick import FleetNode, matching_nodes
from harness.faults.port import Fault, Fidelity, Ground, fidelity_on
from harness.faults.spot_interruption import SpotInterruption
from harness.history.tables import FaultStage
from harness.kube.port import ApiError
from harness.run.chaos import control
from harness.run.chaos.context import RunContext, current
from harness.run.chaos.lib import ActivityFailed, InterruptExecution
from harness.spec import actions as spec
from harness.targets.manifests import read_manifests

__all__ = ["apply_objects", "heal", "pause_load", "spot_interruption"]

logger = logging.getLogger("chaostoolkit")

LATE_S = 5.0
"""Scenario seconds behind its time from which on an action's start is called late."""
HTTP_SLACK_S = 20.0
"""Clock seconds an action may need for its requests, beyond all its waits."""

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
    log = FaultLog(run.run_dir, run.clock)
    async with open_ground(run.run_dir, run.connection, run.clock) as ground:
        deadline_s = ground.within_s(fault.longest_s()) + HTTP_SLACK_S
        limit = asyncio.timeout(deadline_s)
        try:
            async with limit:
                targets = await _targets(run, ground, fault, fault_id, selector, count)
                note = f"{late_s:.0f} scenario seconds late" if late_s > LATE_S else ""
                return await run_fault(fault, fault_id, targets, ground, log, note)
        except TimeoutError as error:
            if not limit.expired():
                raise
            said = f"not over after its deadline of {deadline_s:.0f} s"
            _failed(log, fault, fault_id, said)
            raise ActivityFailed(f"{fault_id}: {said}") from error
        except _NoTargets as error:
            _failed(log, fault, fault_id, str(error.cause))
            raise error.cause from error


class _NoTargets(Exception):
    """Nothing was picked, so the fault has no life of its own to write to the history."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


async def _targets(
    run: RunContext, ground: Ground, fault: Fault, fault_id: str, selector: str | None, count: int
) -> tuple[str, ...]:
    """The planned targets while they are still there and match; otherwise a fresh pick with the plan's seed."""
    try:
        if fidelity_on(type(fault), ground.target) is Fidelity.UNSUPPORTED:
            raise BadInput(f"target {ground.target} does not support {fault.name}")
        fleet = await read_fleet(ground.kube) if selector is not None else ()
        targets = _planned(run, fault_id, selector, count, fleet)
        if targets is None:
            targets = fault.pick(fleet, Random(f"{run.plan.seed}:{fault_id}"))
        if selector is not None:
            check_targets(fault_id, targets, count, fleet, ground.target)
        return targets
    except (HarnessError, ApiError, OSError) as error:
        raise _NoTargets(error) from error


def _planned(
    run: RunContext, fault_id: str, selector: str | None, count: int, fleet: tuple[FleetNode, ...]
) -> tuple[str, ...] | None:
    planned = run.plan.targets.get(fault_id)
    if not planned or selector is None:
        return None
    gone = set(planned) - set(matching_nodes(fleet, selector))
    if gone or len(planned) != count:
        logger.warning("gpu-harness: %s: planned %s, of which %s left; picking anew", fault_id, planned, sorted(gone))
        return None
    return planned


def _failed(log: FaultLog, fault: Fault, fault_id: str, detail: str) -> None:
    log.write(fault_id, fault.name, FaultStage.FAILED, detail=detail, disruptive=fault.disruptive)
