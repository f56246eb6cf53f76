"""What an experiment wants of a cluster whose nodes and cloud are ours: its world, its objects, what has to be up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fakes.config import GatewayConfig, PlantedBug, PoolConfig, ProcessImage, WorldConfig
from fakes.nodes.labels import node_labels
from harness.errors import BadInput, Where
from harness.faults.pick import FleetNode
from harness.kube.port import Json, Resource
from harness.spec.experiment import Experiment
from harness.stack.description import addons, kinds, set_aside
from harness.targets.manifests import read_manifests
from harness.targets.real_pods import images_in


def _to_nobody(text: str) -> None:
    """For who shows no progress."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where a target may write: its own files, its logs, and the book that the fake model servers keep of what they
    send, if anybody wants it. ``say`` shows a person what it is at."""

    folder: Path
    logs: Path
    ledger: Path | None = None
    say: Callable[[str], None] = _to_nobody


@dataclass(frozen=True, slots=True)
class Wanted:
    """``objects`` are applied, and the cluster is up when all Deployments of ``selector`` are available; an empty
    selector waits for none."""

    config: WorldConfig
    objects: Sequence[tuple[Resource, Json]] = ()
    selector: str = ""
    images: tuple[str, ...] = ()
    """Of all containers that may come, those that actions bring among them."""
    stack: tuple[str, ...] = ()
    """Real components, by their names, that are up before the objects are applied."""


def wanted_by(experiment: Experiment, seed: int) -> Wanted:
    stack = experiment.settings.stack
    objects = read_manifests(experiment.manifest_files, kinds(stack))
    later = read_manifests(experiment.action_manifests.values(), kinds(addons()))
    images = tuple(images_in(obj for _, obj in (*objects, *later)))
    return Wanted(world_config(experiment, seed), objects, experiment.settings.workload.selector, images, stack)


def world_config(experiment: Experiment, seed: int) -> WorldConfig:
    """What the experiment's ``world`` block asks of the fakes."""
    settings = experiment.settings
    world = settings.world
    if world is None:
        raise BadInput(
            "this target needs a `world`: which pools of nodes the cluster has",
            where=Where(str(experiment.path), key="extensions.gpu-harness"),
            hint="add world: {pools: [{name: spot, capacity_type: spot, gpus: 4, nodes: 1}]}",
        )
    if world.processes and settings.time_scale != 1:
        raise BadInput(
            f"time_scale is {settings.time_scale:g}, but `world.processes` are real: they know only the machine's time",
            where=Where(str(experiment.path), key="extensions.gpu-harness.time_scale"),
            hint="set time_scale: 1, and times as they are",
        )
    return WorldConfig(
        seed=seed,
        time_scale=settings.time_scale,
        pools=tuple(PoolConfig(**pool.model_dump()) for pool in world.pools),
        preset=world.preset,
        planted_bugs=frozenset(PlantedBug(bug) for bug in world.planted_bugs),
        gateway_namespace=settings.workload.namespace,
        gateway_service=settings.workload.service,
        processes=tuple(ProcessImage(p.image, p.command, tuple(p.env.items()), p.folders) for p in world.processes),
        gateway=GatewayConfig(**world.gateway.model_dump()),
        aside=set_aside(settings.stack),
        feature_gates={str(component): gates for component, gates in world.feature_gates.items()},
    )


def with_stack(wanted: Wanted, names: Sequence[str]) -> Wanted:
    """The same, and these real components beside those it has."""
    stack = tuple(dict.fromkeys((*wanted.stack, *names)))
    return replace(wanted, stack=stack, config=replace(wanted.config, aside=set_aside(stack)))


def two_empty_nodes(seed: int) -> WorldConfig:
    """The world of an ``up`` without an experiment, in real time."""
    pools = tuple(PoolConfig(kind, kind, nodes=1, stock=4) for kind in ("spot", "on-demand"))
    return WorldConfig(seed=seed, time_scale=1.0, pools=pools)


def planned_fleet(config: WorldConfig) -> tuple[FleetNode, ...]:
    """The nodes as they will be at the start."""
    return tuple(
        FleetNode(name=name, labels=node_labels(pool, name), gpus=pool.gpus)
        for pool in config.pools
        for name in (f"{pool.name}-{i}" for i in range(1, pool.nodes + 1))
    )
