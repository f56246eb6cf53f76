"""One fault of an experiment's method, from its targets to the end of its own course, whoever directs the method."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from harness.errors import BadInput, HarnessError, TargetError
from harness.faults.catalogue.apply_objects import ApplyObjects
from harness.faults.fault import Fault, Target, fidelity_on, why_unsupported
from harness.faults.fidelity import Fidelity
from harness.faults.fleet import read_fleet
from harness.faults.guards import check_targets
from harness.faults.life import FaultResult, run_fault
from harness.faults.log import FaultLog
from harness.faults.objects import ref_of
from harness.faults.port import Ground
from harness.faults.scene import FleetPod, Scene
from harness.history.tables import FaultStage
from harness.kube.port import POD, ApiError

logger = logging.getLogger("chaostoolkit")

LATE_S = 5.0
"""Scenario seconds behind its time from which on an action's start is called late."""
HTTP_SLACK_S = 20.0
"""Clock seconds an action may need for its requests, beyond all its waits."""


@dataclass(frozen=True, slots=True)
class Play:
    """``planned`` are the plan's targets."""

    fault: Fault
    fault_id: str
    seed: int
    planned: Sequence[str] = ()


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
    fault = play.fault
    try:
        if fidelity_on(type(fault), ground.target) is Fidelity.UNSUPPORTED:
            why = why_unsupported(type(fault), ground.target)
            raise BadInput(f"target {ground.target} does not support {fault.name}: {why}")
        scene = await read_scene(fault, ground)
        targets = tuple(play.planned)
        if not fault.fits(scene, targets):
            if targets:
                logger.warning("gpu-harness: %s: planned %s do not fit any more; picking anew", play.fault_id, targets)
            targets = fault.pick(scene, Random(f"{play.seed}:{play.fault_id}"))
        if fault.kind is Target.NODES:
            check_targets(play.fault_id, targets, fault.most_targets(), scene.nodes, ground.target)
        elif not targets or len(targets) > fault.most_targets() or len(set(targets)) != len(targets):
            raise BadInput(f"{play.fault_id}: picked {', '.join(targets) or 'nothing'}, at most {fault.most_targets()}")
        return targets
    except (HarnessError, ApiError, OSError) as error:
        raise _NoTargets(error) from error


async def read_scene(fault: Fault, ground: Ground) -> Scene:
    """As much of the running cluster as the fault picks its targets from."""
    if isinstance(fault, ApplyObjects):
        refs = (ref_of(resource, obj) for resource, obj in ground.manifest(fault.manifest))
        return Scene(objects={fault.manifest: tuple(map(str, refs))})
    match fault.kind:
        case Target.NODES:
            return Scene(nodes=await read_fleet(ground.kube))
        case Target.PODS:
            return Scene(pods=await read_pods(ground))
        case Target.POOLS:
            return Scene(pools=await ground.world.pools() if ground.world is not None else ())
        case Target.OBJECTS | Target.PARTS:
            return Scene()


async def read_pods(ground: Ground) -> tuple[FleetPod, ...]:
    """Pods of the run's namespace that stay, by name."""
    pods = (await ground.kube.list(POD, ground.namespace)).items
    return tuple(
        FleetPod(
            f"{ground.namespace}/{pod['metadata']['name']}",
            {**(pod["metadata"].get("labels") or {})},
            str(pod["spec"].get("nodeName", "")),
        )
        for pod in sorted(pods, key=lambda p: str(p["metadata"]["name"]))
        if not pod["metadata"].get("deletionTimestamp") and pod.get("status", {}).get("phase") == "Running"
    )


def _failed(log: FaultLog, play: Play, detail: str) -> None:
    log.write(play.fault_id, play.fault.name, FaultStage.FAILED, detail=detail, disruptive=play.fault.disruptive)
