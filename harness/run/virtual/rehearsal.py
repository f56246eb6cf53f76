"""One variant of a fault on a small world in virtual time: is it seen, is it healed, is it missed when it does nothing?

A fault whose proof also comes without the fault proves nothing. So each variant is played twice: as it is, and with its
switches *disconnected*, where every change is accepted and none is made.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fakes.config import PoolConfig, WorldConfig
from harness.clock import NS_PER_S
from harness.errors import HarnessError
from harness.faults.catalogue.load import LoadFault
from harness.faults.fault import Fault, Variant
from harness.faults.fidelity import VIRTUAL
from harness.faults.heal import heal_pending
from harness.faults.log import FaultLog
from harness.faults.port import Ground, Patience
from harness.faults.undo import UndoJournal
from harness.faults.world_control import ForwardingWorld, Value, WorldControl
from harness.history.tables import FaultStage
from harness.kube.port import (
    DEPLOYMENT,
    ApiError,
    ForwardingKube,
    Json,
    Kube,
    Patch,
    PatchType,
    Resource,
)
from harness.plan.load_faults import with_load_faults
from harness.plan.schedule import SCHEDULE_FILE, Schedule
from harness.run.load.arrival import DEFAULT_TENANT
from harness.run.load.limits import SendLimits
from harness.run.load.prompts import Bodies
from harness.run.load.records import Records
from harness.run.load.settings import read_arrivals
from harness.run.playing import Play, play
from harness.run.virtual.cluster import Cluster
from harness.run.virtual.load import VirtualLoad
from harness.run.virtual.loop import VirtualClock, VirtualLoop
from harness.run.virtual.pulse import pulse
from harness.targets.manifests import apply, read_manifests, wait_until_available

TIME_SCALE = 15.0
NAMESPACE_NAME, SELECTOR, MODEL = "inference", "app=llm", "llama-8b"
POOLS = (
    PoolConfig("spot-a", "spot", nodes=1, stock=1, zone="zone-a", price_per_hour=5.9),
    PoolConfig("spot-b", "spot", nodes=1, stock=1, zone="zone-b", price_per_hour=6.1),
    PoolConfig("on-demand", "on-demand", nodes=2, stock=8, zone="zone-a", price_per_hour=12.3),
)
FULL_S = 240.0
"""Scenario seconds until all that was asked for runs, on nodes that had to come first."""
STEADY_PER_S = 4
"""Requests a clock second beneath a fault of the load."""
SETTLE_S = 60.0
"""Scenario seconds between a world that is up and the fault."""


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """``healed`` is None where the fault leaves nothing that could be seen to heal."""

    observed: bool
    healed: bool | None
    stages: tuple[str, ...]
    said: str


def rehearse(
    fault: type[Fault],
    variant: Variant,
    workload: Path,
    *,
    seed: int = 1,
    disconnected: bool = False,
    as_user: Callable[[Kube], Kube] = lambda kube: kube,
) -> Rehearsed:
    """``workload``: a manifest with a Deployment ``llm`` and its Service. Runs a loop of its own. ``as_user`` may put
    something between the fault and the API."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner, tempfile.TemporaryDirectory() as folder:
        return runner.run(_rehearse(fault, variant, workload, Path(folder), seed, disconnected, as_user))


class _Book(FaultLog):
    """The fault's life, kept in memory as well; ``injected`` is set with that stage."""

    def __init__(self, run_dir: Path, clock: VirtualClock) -> None:
        super().__init__(run_dir, clock)
        self.lines: list[tuple[FaultStage, str]] = []
        self.injected = asyncio.Event()

    def write(
        self,
        fault_id: str,
        fault: str,
        stage: FaultStage,
        *,
        targets: Sequence[str] = (),
        fidelity: str = "",
        detail: str = "",
        disruptive: bool = True,
    ) -> None:
        self.lines.append((stage, detail))
        if stage is FaultStage.INJECTED:
            self.injected.set()


async def _rehearse(
    kind: type[Fault],
    variant: Variant,
    workload: Path,
    folder: Path,
    seed: int,
    disconnected: bool,
    as_user: Callable[[Kube], Kube],
) -> Rehearsed:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    clock = VirtualClock(loop, TIME_SCALE)
    async with standing_world(workload, seed, variant.pools) as cluster:
        await asyncio.sleep(clock.clock_s(SETTLE_S))
        kube, control = as_user(cluster.kube()), cluster.control
        ground = Ground(
            target=VIRTUAL,
            namespace=NAMESPACE_NAME,
            kube=Unwritten(kube) if disconnected else kube,
            clock=clock,
            undo=UndoJournal(folder, clock),
            run_dir=folder,
            selector=SELECTOR,
            world=Disconnected(control) if disconnected else control,
            senses=cluster.senses,
            label=f"rehearsal-{seed}",
            patience=Patience(poll_s=0.1, slack_s=1.0),
        )
        book = _Book(folder, clock)
        load = _load(kind, variant, cluster, clock, folder, seed, disconnected)
        if load is not None:
            ground = replace(ground, load=load)
        if variant.demand_leaves:
            await _ask_for(cluster.kube(), variant.demand_gpus)
            await asyncio.sleep(clock.clock_s(FULL_S))
        demand = asyncio.create_task(_demand(cluster.kube(), variant, book.injected))
        sending = asyncio.create_task(load.run(clock.now_ns())) if load is not None else None
        error = await _play(kind, variant, seed, ground, book)
        await heal_pending(ground, book)
        if load is not None and sending is not None:
            sending.cancel()
            load.stop("the rehearsal is over")
            load.close()
        demand.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await demand
    stages = tuple(stage.value for stage, _ in book.lines)
    healed = None if not _heals(stages) else "heal_observed" in stages and "heal_not_observed" not in stages
    said = "; ".join(f"{stage}: {detail}" for stage, detail in book.lines if detail) + (f" [{error}]" if error else "")
    return Rehearsed("observed" in stages, healed, stages, said)


def _heals(stages: Sequence[str]) -> bool:
    return any(stage.startswith("heal_") for stage in stages)


def _load(
    kind: type[Fault],
    variant: Variant,
    cluster: Cluster,
    clock: VirtualClock,
    folder: Path,
    seed: int,
    disconnected: bool,
) -> VirtualLoad | None:
    """For a fault of the load itself: the plan that has it, and disconnected the same plan without it."""
    if not issubclass(kind, LoadFault):
        return None
    fault = kind.model_validate({"after_s": 0, **variant.arguments})
    count = int(clock.clock_s(fault.ends_s) * STEADY_PER_S)
    t_ns = np.arange(count, dtype=np.int64) * (NS_PER_S // STEADY_PER_S)
    lengths = (np.full(count, 200, dtype=np.int64), np.full(count, 60, dtype=np.int64))
    steady = Schedule(t_ns, *lengths, np.full(count, DEFAULT_TENANT), np.full(count, ""))
    faults = [] if disconnected else [(f"{kind.name}-1", fault)]
    with_load_faults(steady, faults, TIME_SCALE, seed).write(folder / SCHEDULE_FILE)
    return VirtualLoad(
        read_arrivals(folder / SCHEDULE_FILE),
        cluster.entry,
        Bodies(MODEL, seed),
        Records(folder / "load" / "records.jsonl"),
        clock,
        SendLimits(2.0, 20.0, 5.0, 40.0),
        seed,
    )


async def _play(kind: type[Fault], variant: Variant, seed: int, ground: Ground, book: _Book) -> str:
    fault = kind.model_validate({"after_s": 0, **variant.arguments})
    try:
        await play(Play(fault, f"{kind.name}-1", seed), ground, book, 0.0)
    except (HarnessError, ApiError, OSError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


@asynccontextmanager
async def standing_world(
    workload: Path, seed: int, more_pools: Sequence[Mapping[str, Any]] = ()
) -> AsyncIterator[Cluster]:
    """Up, with every replica available and a little traffic."""
    pools = (*POOLS, *(PoolConfig(**pool) for pool in more_pools))
    cluster = Cluster(WorldConfig(seed, TIME_SCALE, pools, gateway_namespace=NAMESPACE_NAME))
    world = asyncio.create_task(cluster.world.run())
    beat = asyncio.create_task(pulse(cluster.entry, MODEL))
    try:
        await apply(cluster.kube(), read_manifests([workload]))
        waiting = asyncio.create_task(wait_until_available(cluster.kube(), NAMESPACE_NAME, SELECTOR, 100.0))
        await asyncio.wait([world, waiting], return_when=asyncio.FIRST_COMPLETED)
        if world.done():
            world.result()
        await waiting
        yield cluster
        if world.done():
            world.result()  # a controller that raised is a defect, and shown as one
    finally:
        for task in (beat, world):
            task.cancel()
        await asyncio.gather(beat, world, return_exceptions=True)
        cluster.close()


async def _demand(kube: Kube, variant: Variant, injected: asyncio.Event) -> None:
    """Once the fault is on somebody wants GPUs, or does not want them any more."""
    await injected.wait()
    if variant.demand_leaves:
        await kube.delete(DEPLOYMENT, "demand", NAMESPACE_NAME)
    elif variant.demand_gpus:
        await _ask_for(kube, variant.demand_gpus)


async def _ask_for(kube: Kube, gpus: int) -> None:
    """A Deployment of one-GPU pods."""
    labels = {"app": "llm", "part": "demand"}  # behind the same Service: endpoints change as well
    limits = {"nvidia.com/gpu": "1"}
    container = {
        "name": "vllm", "image": "vllm/vllm-openai:v0.33.0", "args": ["--served-model-name", MODEL],
        "resources": {"limits": limits, "requests": {"cpu": "1", **limits}},
        "readinessProbe": {"httpGet": {"path": "/health", "port": 8000}, "periodSeconds": 5},
    }  # fmt: skip
    await kube.create(
        DEPLOYMENT,
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "demand", "namespace": NAMESPACE_NAME},
            "spec": {
                "replicas": gpus,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
            },
        },
    )


class Disconnected(ForwardingWorld):
    """A ``WorldControl`` whose switches turn and do nothing: the planted no-op that every proof must miss."""

    def __init__(self, world: WorldControl) -> None:
        super().__init__(world)
        self._turned: dict[tuple[str, str], Value] = {}

    async def interrupt(self, instance_id: str, notice_s: float) -> None:
        return None

    async def cancel_interruption(self, instance_id: str) -> str:
        return f"no interruption is planned for {instance_id} any more"

    async def knob(self, knob: str, target: str) -> Value:
        return self._turned.get((knob, target))

    async def turn(self, knob: str, target: str, value: Value) -> None:
        self._turned[knob, target] = value

    async def do(self, verb: str, target: str, arguments: Json) -> None:
        return None


class Unwritten(ForwardingKube):
    """A ``Kube`` that reads, and drops what is written."""

    async def create(self, resource: Resource, obj: Json, namespace: str | None = None) -> Json:
        return obj

    async def update(self, resource: Resource, obj: Json, *, subresource: str | None = None) -> Json:
        return obj

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Patch,
        namespace: str | None = None,
        *,
        type: PatchType = PatchType.MERGE,
        subresource: str | None = None,
    ) -> Json:
        return await self._kube.get(resource, name, namespace)

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        grace_s: int | None = None,
        uid: str | None = None,
        propagation: str | None = None,
    ) -> None:
        return None

    async def evict(self, name: str, namespace: str, *, grace_s: int | None = None, dry_run: bool = False) -> None:
        return None

    async def bind(self, name: str, namespace: str, node: str) -> None:
        return None
