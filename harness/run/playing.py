"""One fault of an experiment's method, from its targets to the end of its own course, whoever directs the method."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from harness.errors import BadInput, GuardRefused, HarnessError, TargetError
from harness.faults.catalogue.apply_objects import ApplyObjects
from harness.faults.fault import Fault, Target, fidelity_on, why_unsupported
from harness.faults.fidelity import Fidelity
from harness.faults.fleet import read_fleet
from harness.faults.guards import STARTED_BY_US, check_namespace, check_pool, check_system_namespace, check_targets
from harness.faults.life import FaultResult, run_fault
from harness.faults.log import FaultLog
from harness.faults.objects import ref_of
from harness.faults.port import Ground
from harness.faults.scene import FleetPod, Scene
from harness.faults.sight import nodes_of, pool_of
from harness.faults.spared import OBSERVER_LABEL, spared_nodes
from harness.history.tables import FaultStage
from harness.kube.port import NAMESPACE, NODE_POOL, POD, ApiError

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


class NoTargets(Exception):
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
            targets = await find_targets(what, ground)
            note = f"{late_s:.0f} scenario seconds late" if late_s > LATE_S else ""
            return await run_fault(fault, what.fault_id, targets, ground, log, note)
    except TimeoutError as error:
        if not limit.expired():
            raise
        said = f"not over after its deadline of {deadline_s:.0f} s"
        _failed(log, what, said)
        raise TargetError(f"{what.fault_id}: {said}") from error
    except NoTargets as error:
        _failed(log, what, str(error.cause))
        raise error.cause from error


async def find_targets(play: Play, ground: Ground) -> tuple[str, ...]:
    """The planned targets while they are still there and match; otherwise a fresh pick with the plan's seed. All guards
    that need the running cluster are asked here. Raises ``NoTargets``."""
    fault = play.fault
    try:
        if fidelity_on(type(fault), ground.target) is Fidelity.UNSUPPORTED:
            why = why_unsupported(type(fault), ground.target)
            raise BadInput(f"target {ground.target} does not support {fault.name}: {why}")
        await _check_opt_in(play.fault_id, fault, ground)
        spared = await _spared(fault, ground)
        scene = await read_scene(fault, ground, spared)
        targets = tuple(play.planned)
        if not fault.fits(scene, targets):
            if targets:
                logger.warning("gpu-harness: %s: planned %s do not fit any more; picking anew", play.fault_id, targets)
            targets = _pick(play, scene, spared)
        if fault.kind is Target.NODES:
            check_targets(play.fault_id, targets, fault.most_targets(), scene.nodes, ground.target)
        elif fault.kind is Target.POOLS:
            await check_pools(play.fault_id, fault, targets, ground, spared)
        if not targets or len(targets) > fault.most_targets() or len(set(targets)) != len(targets):
            raise BadInput(f"{play.fault_id}: picked {', '.join(targets) or 'nothing'}, at most {fault.most_targets()}")
        return targets
    except (HarnessError, ApiError, OSError) as error:
        raise NoTargets(error) from error


def _pick(play: Play, scene: Scene, spared: Mapping[str, str]) -> tuple[str, ...]:
    try:
        return play.fault.pick(scene, Random(f"{play.seed}:{play.fault_id}"))
    except BadInput as error:
        if not spared or play.fault.kind is not Target.NODES:
            raise
        said = "; ".join(f"{node}: {why}" for node, why in sorted(spared.items()))
        raise GuardRefused(f"{play.fault_id}: {error.message}; spared are {said}", hint=error.hint) from error


async def _check_opt_in(fault_id: str, fault: Fault, ground: Ground) -> None:
    check_system_namespace(fault_id, ground.namespace)
    if ground.target in STARTED_BY_US:
        return
    for name in sorted({ground.namespace, *fault.namespaces(ground)}):
        if not name:
            raise GuardRefused(
                f"{fault_id}: it would make objects of the whole cluster, for which nobody can opt in",
                hint="make them by hand before the run, and leave them out of the manifest",
            )
        check_system_namespace(fault_id, name)
        check_namespace(fault_id, await ground.kube.get(NAMESPACE, name))


async def _spared(fault: Fault, ground: Ground) -> dict[str, str]:
    """Asked only for a fault that nodes may fall to. In a cluster of ours this machine is none of them."""
    if fault.kind is not Target.NODES and not fault.drains:
        return {}
    return await spared_nodes(ground.kube, "" if ground.target in STARTED_BY_US else None)


async def check_pools(
    fault_id: str, fault: Fault, pools: Sequence[str], ground: Ground, spared: Mapping[str, str]
) -> None:
    if ground.target not in STARTED_BY_US:
        for pool in pools:
            check_pool(fault_id, await ground.kube.get(NODE_POOL, pool))
    if fault.drains:
        nodes = await nodes_of(ground.kube)
        held = {n: why for n, why in spared.items() if n in nodes and pool_of(nodes[n]) in pools}
        if held:
            said = "; ".join(f"{node}: {why}" for node, why in sorted(held.items()))
            raise GuardRefused(f"{fault_id}: it would drain nodes that are spared: {said}", hint="name another pool")


async def read_scene(fault: Fault, ground: Ground, spared: Container[str] = ()) -> Scene:
    """As much of the running cluster as the fault picks its targets from, without the nodes that are spared."""
    if isinstance(fault, ApplyObjects):
        refs = (ref_of(resource, obj) for resource, obj in ground.manifest(fault.manifest))
        return Scene(objects={fault.manifest: tuple(map(str, refs))})
    match fault.kind:
        case Target.NODES:
            nodes = [node for node in await read_fleet(ground.kube) if node.name not in spared]
            return Scene(nodes=nodes, running=True)
        case Target.PODS:
            return Scene(pods=await read_pods(ground))
        case Target.POOLS:
            return Scene(pools=await ground.world.pools() if ground.world is not None else ())
        case Target.OBJECTS | Target.PARTS:
            return Scene()


async def read_pods(ground: Ground) -> tuple[FleetPod, ...]:
    """Pods of the run's namespace that stay, by name; those that observe the run apart."""
    pods = (await ground.kube.list(POD, ground.namespace)).items
    return tuple(
        FleetPod(
            f"{ground.namespace}/{pod['metadata']['name']}",
            {**(pod["metadata"].get("labels") or {})},
            str(pod["spec"].get("nodeName", "")),
        )
        for pod in sorted(pods, key=lambda p: str(p["metadata"]["name"]))
        if not pod["metadata"].get("deletionTimestamp")
        and OBSERVER_LABEL not in (pod["metadata"].get("labels") or {})
        and pod.get("status", {}).get("phase") == "Running"
    )


def _failed(log: FaultLog, play: Play, detail: str) -> None:
    log.write(play.fault_id, play.fault.name, FaultStage.FAILED, detail=detail, disruptive=play.fault.disruptive)
