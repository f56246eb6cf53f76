"""One fault of an experiment's method, from its targets to the end of its own course, whoever directs the method."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from harness.errors import BadInput, HarnessError, TargetError
from harness.faults.fleet import read_fleet
from harness.faults.guards import check_targets
from harness.faults.life import FaultResult, run_fault
from harness.faults.log import FaultLog
from harness.faults.pick import FleetNode, matching_nodes
from harness.faults.port import Fault, Fidelity, Ground, fidelity_on
from harness.history.tables import FaultStage
from harness.kube.port import ApiError

logger = logging.getLogger("chaostoolkit")

LATE_S = 5.0
"""Scenario seconds behind its time from which on an action's start is called late."""
HTTP_SLACK_S = 20.0
"""Clock seconds an action may need for its requests, beyond all its waits."""


@dataclass(frozen=True, slots=True)
class Play:
    """``selector`` and ``count`` are given where targets are nodes; ``planned`` are the plan's targets."""

    fault: Fault
    fault_id: str
    seed: int
    planned: Sequence[str] = ()
    selector: str | None = None
    count: int = 0


class _NoTargets(Exception):
    """Nothing was picked, so the fault has no life of its own to write to the history."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


async def play(what: Play, ground: Ground, log: FaultLog, late_s: float) -> FaultResult:
    """``late_s``: how many scenario seconds behind its time it begins. What it raises is in the history as well."""
    fault = what.fault
    deadline_s = ground.within_s(fault.longest_s()) + HTTP_SLACK_S
    limit = asyncio.timeout(deadline_s)
    try:
        async with limit:
            targets = await _targets(what, ground)
            note = f"{late_s:.0f} scenario seconds late" if late_s > LATE_S else ""
            return await run_fault(fault, what.fault_id, targets, ground, log, note)
    except TimeoutError as error:
        if not limit.expired():
            raise
        said = f"not over after its deadline of {deadline_s:.0f} s"
        _failed(log, what, said)
        raise TargetError(f"{what.fault_id}: {said}") from error
    except _NoTargets as error:
        _failed(log, what, str(error.cause))
        raise error.cause from error


async def _targets(play: Play, ground: Ground) -> tuple[str, ...]:
    """The planned targets while they are still there and match; otherwise a fresh pick with the plan's seed."""
    try:
        if fidelity_on(type(play.fault), ground.target) is Fidelity.UNSUPPORTED:
            raise BadInput(f"target {ground.target} does not support {play.fault.name}")
        fleet = await read_fleet(ground.kube) if play.selector is not None else ()
        targets = _planned(play, fleet)
        if targets is None:
            targets = play.fault.pick(fleet, Random(f"{play.seed}:{play.fault_id}"))
        if play.selector is not None:
            check_targets(play.fault_id, targets, play.count, fleet, ground.target)
        return targets
    except (HarnessError, ApiError, OSError) as error:
        raise _NoTargets(error) from error


def _planned(play: Play, fleet: Sequence[FleetNode]) -> tuple[str, ...] | None:
    planned = tuple(play.planned)
    if not planned or play.selector is None:
        return None
    gone = set(planned) - set(matching_nodes(fleet, play.selector))
    if gone or len(planned) != play.count:
        left = sorted(gone)
        logger.warning("gpu-harness: %s: planned %s, of which %s left; picking anew", play.fault_id, planned, left)
        return None
    return planned


def _failed(log: FaultLog, play: Play, detail: str) -> None:
    log.write(play.fault_id, play.fault.name, FaultStage.FAILED, detail=detail, disruptive=play.fault.disruptive)
