"""The embedded side: store, controllers and hollow nodes of one scenario, in virtual time."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Coroutine
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

from aiohttp import web
from bothsides.given_metrics import GivenMetrics
from bothsides.hollow import DURATIONS, Health, HollowNodes
from bothsides.play import Played, play
from bothsides.stage import Scenario, Stage

from fakes.clock import WallClock
from fakes.controllers.deployment import DeploymentController
from fakes.controllers.disruption import DisruptionController
from fakes.controllers.endpointslice import EndpointSliceController
from fakes.controllers.garbage import GarbageCollector
from fakes.controllers.hpa import HpaController
from fakes.controllers.namespace import NamespaceController
from fakes.controllers.node_lifecycle import NodeLifecycleController
from fakes.controllers.pod_group_protection import PodGroupProtection
from fakes.controllers.replicaset import ReplicaSetController
from fakes.controllers.scheduler import Scheduler
from fakes.controllers.statefulset import StatefulSetController
from fakes.kube.local import LocalKube
from fakes.kube.server import make_app
from fakes.kube.store import Store
from fakes.timing import Timing
from harness.errors import TargetError
from harness.kube.port import ApiError
from harness.run.virtual.loop import VirtualLoop
from harness.stack.ports import HOST
from harness.targets.embedded import kubeconfig_text

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
NAMESPACE = "stage"


def play_embedded(scenario: Scenario, seed: int = 0) -> Played | Exception:
    if scenario.kubectl:
        return asyncio.run(_played(scenario, seed))
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(_played(scenario, seed))
    finally:
        loop.close()


async def _played(scenario: Scenario, seed: int) -> Played | Exception:
    wall = WallClock(EPOCH)
    store = Store(wall, Random(f"{seed}:store"))
    kube = LocalKube(store, "gpu-harness")
    health = Health()
    metrics = GivenMetrics(kube, wall)
    async with asyncio.TaskGroup() as tasks:
        nodes = HollowNodes(LocalKube(store, "kubelet"), wall, tasks, health)
        background = [tasks.create_task(part) for part in (nodes.run(), *controllers(store, wall, metrics, seed))]
        stage = Stage(kube, NAMESPACE, nodes, health, metrics)
        try:
            async with _served(store, stage) if scenario.kubectl else contextlib.nullcontext():
                return await play(scenario, stage)
        except (ApiError, TimeoutError, TargetError) as error:
            return error
        finally:
            nodes.stop_all()
            for task in background:
                task.cancel()


@contextlib.asynccontextmanager
async def _served(store: Store, stage: Stage) -> AsyncIterator[None]:
    """The API on a socket, and a kubeconfig for it."""
    runner = web.AppRunner(make_app(store, []), access_log=None, shutdown_timeout=0.2, handler_cancellation=True)
    await runner.setup()
    try:
        await web.TCPSite(runner, HOST, 0).start()
        with tempfile.TemporaryDirectory(prefix="behaviour-") as folder:
            file = Path(folder) / "kubeconfig"
            file.write_text(kubeconfig_text(f"http://{HOST}:{runner.addresses[0][1]}"))
            stage.kubeconfig = str(file)
            yield
    finally:
        await runner.cleanup()


def controllers(store: Store, wall: WallClock, metrics: GivenMetrics, seed: int) -> list[Coroutine[Any, Any, None]]:
    timing = Timing(1.0, DURATIONS)
    kube = LocalKube(store, "kube-controller-manager")

    def rng(stream: str) -> Random:
        return Random(f"{seed}:{stream}")

    return [
        DeploymentController(kube, wall, rng("deployment"), timing).run(),
        ReplicaSetController(kube, wall, rng("replicaset"), timing).run(),
        StatefulSetController(kube, wall).run(),
        HpaController(kube, wall, timing, metrics, apis=metrics.apis()).run(),
        EndpointSliceController(kube, wall).run(),
        DisruptionController(kube, wall).run(),
        NodeLifecycleController(kube, wall, timing).run(),
        GarbageCollector(kube, wall, timing).run(),
        NamespaceController(kube, wall, timing).run(),
        PodGroupProtection(kube).run(),
        Scheduler(LocalKube(store, "kube-scheduler"), wall, timing).run(),
    ]
