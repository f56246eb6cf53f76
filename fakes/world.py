"""The embedded cluster, assembled: every part of ``fakes/`` in one asyncio process.

``World`` is the cluster without sockets of its own API; ``serve`` adds the HTTP servers. ``python -m fakes.world`` runs
until SIGTERM, until its time is over, or until its parent is gone.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Coroutine
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

from aiohttp import web

from fakes.clock import WallClock
from fakes.cloud.cloud import Cloud, Instance
from fakes.cloud.control import control_app
from fakes.cloud.node_controller import CloudNodeController
from fakes.config import WorldConfig
from fakes.controllers.deployment import DeploymentController
from fakes.controllers.disruption import DisruptionController
from fakes.controllers.endpointslice import EndpointSliceController
from fakes.controllers.garbage import GarbageCollector
from fakes.controllers.hpa import HpaController
from fakes.controllers.informer import Informer
from fakes.controllers.karpenter.lifecycle import NodeClaimLifecycle
from fakes.controllers.karpenter.provisioner import Provisioner
from fakes.controllers.karpenter.termination import Termination
from fakes.controllers.node_lifecycle import NodeLifecycleController
from fakes.controllers.replicaset import ReplicaSetController
from fakes.controllers.scheduler import Scheduler
from fakes.gateway.gateway import Gateway
from fakes.kube.local import LocalKube
from fakes.kube.server import bookmark_period_s, make_app
from fakes.kube.store import Store
from fakes.metrics.custom_metrics import CustomMetrics
from fakes.metrics.scraper import Scraper
from fakes.metrics.source import LocalSource
from fakes.nodes.assigned import AssignedPods
from fakes.nodes.kubelet import Kubelet
from fakes.nodes.runtime import Container, ImageRuntime
from fakes.timing import PRESETS, Timing
from fakes.vllm.container import VllmContainer
from fakes.vllm.door import MakeDoor
from fakes.vllm.http_door import HttpDoor
from fakes.vllm.ledger import LedgerFile
from fakes.vllm.local_door import Switchboard
from harness.kube.port import POD, Json

HOST = "127.0.0.1"
PARENT_FD_ENV = "GPU_HARNESS_PARENT_FD"


class World:
    """All controllers, nodes and the cloud of one cluster, on one store and one loop. Needs a running event loop.

    With a ``switchboard`` model servers and scrapes need no sockets, and nothing here does.
    """

    def __init__(
        self,
        config: WorldConfig,
        epoch: datetime,
        ledger: LedgerFile | None = None,
        switchboard: Switchboard | None = None,
    ) -> None:
        self.config = config
        self._ledger = ledger
        self._door: MakeDoor = switchboard.door if switchboard else HttpDoor
        self.wall = WallClock(epoch)
        self.timing = Timing(config.time_scale, PRESETS[config.preset])
        self.store = Store(self.wall, self._rng("store"))
        self._bugs = config.planted_bugs
        self._kubelets: dict[str, Kubelet] = {}
        self._tasks = asyncio.TaskGroup()
        self._runtime = ImageRuntime(self.timing, {"vllm": self._model_server})
        self._pod_informer = Informer(self.kube("kubelet"), POD)
        self._pods = AssignedPods(self._pod_informer)
        self.cloud = Cloud(config.pools, self.timing, self._rng("cloud"), boot=self._boot, lost=self._lost)
        source = LocalSource(switchboard) if switchboard else None
        self.scraper = Scraper(self.kube("prometheus"), self.timing, config.gateway_namespace, "", source)
        self.metrics = CustomMetrics(self.scraper, self.wall)
        self.gateway = Gateway(
            self.kube("gateway"), config.gateway_namespace, config.gateway_service, self._rng("gateway"), self._bugs
        )

    async def run(self) -> None:
        """Until cancelled; a controller that raises is a defect and ends the world."""
        try:
            async with self._tasks:
                for part in self._parts():
                    self._tasks.create_task(part)
                self.cloud.start()
        finally:
            self.cloud.stop()

    def _parts(self) -> list[Coroutine[Any, Any, None]]:
        kube, wall, timing, bugs = self.kube, self.wall, self.timing, self._bugs
        manager = "kube-controller-manager"
        return [
            DeploymentController(kube(manager), wall, self._rng("deployment"), timing).run(),
            ReplicaSetController(kube(manager), wall, self._rng("replicaset"), timing).run(),
            HpaController(kube(manager), wall, timing, self.metrics, bugs).run(),
            EndpointSliceController(kube(manager), wall).run(),
            DisruptionController(kube(manager), wall).run(),
            NodeLifecycleController(kube(manager), wall, timing).run(),
            GarbageCollector(kube(manager), wall, timing).run(),
            Scheduler(kube("kube-scheduler"), wall, timing, bugs).run(),
            Provisioner(kube("karpenter"), wall, timing, self.cloud, self._rng("provisioner")).run(),
            NodeClaimLifecycle(kube("karpenter"), wall, timing, self.cloud).run(),
            Termination(kube("karpenter"), wall, timing, self.cloud, bugs).run(),
            CloudNodeController(kube("cloud-controller-manager"), self.cloud).run(),
            self._pod_informer.run(),
            self.scraper.run(),
            self.gateway.run(),
        ]

    def kube(self, field_manager: str) -> LocalKube:
        return LocalKube(self.store, field_manager)

    def _rng(self, stream: str) -> Random:
        return Random(f"{self.config.seed}:{stream}")

    def _boot(self, instance: Instance) -> None:
        kubelet = Kubelet(
            instance.machine,
            self.kube("kubelet"),
            self._pods,
            timing=self.timing,
            wall=self.wall,
            rng=self._rng(f"node-{instance.node}"),
            runtime=self._runtime,
            bugs=self._bugs,
        )
        self._kubelets[instance.node] = kubelet
        self._tasks.create_task(kubelet.run())

    def _lost(self, instance: Instance) -> None:
        if kubelet := self._kubelets.pop(instance.node, None):
            kubelet.kill()

    async def _model_server(self, pod: Json, container: Json) -> Container:
        server = VllmContainer(
            pod,
            container,
            timing=self.timing,
            rng=self._rng(f"pod-{pod['metadata']['name']}"),
            bugs=self._bugs,
            wall=self.wall,
            note=self._ledger.of(pod["metadata"]["name"]) if self._ledger else None,
            door=self._door,
        )
        await server.start()
        return server


async def serve(config: WorldConfig, ready: Path, ttl_s: float | None, ledger: Path | None = None) -> None:
    """Runs a world and its servers until a signal, the end of ``ttl_s``, or the parent's end.

    ``ready`` is written (atomically) with ``api_url``, ``gateway_url`` and ``control_url`` once all three answer.
    ``ledger`` is where the model servers write down what they send.
    """
    book = LedgerFile(ledger) if ledger is not None else None
    world = World(config, datetime.now(UTC), book)
    stop = asyncio.Event()
    _stop_on(stop, ttl_s)
    running = asyncio.create_task(world.run())
    running.add_done_callback(lambda _: stop.set())
    apps = {
        "api_url": make_app(
            world.store,
            [world.metrics, world.metrics.v1beta2],
            bookmark_s=bookmark_period_s(config.time_scale),
        ),
        "gateway_url": world.gateway.app(),
        "control_url": control_app(world.cloud, {"time_scale": config.time_scale, "seed": config.seed}),
    }
    runners = {name: await _listen(app) for name, app in apps.items()}
    urls = {name: f"http://{HOST}:{runner.addresses[0][1]}" for name, runner in runners.items()}
    part = ready.with_suffix(".part")
    part.write_text(json.dumps(urls))
    part.rename(ready)
    await stop.wait()
    if running.done():
        await running  # shows why
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    await asyncio.gather(*(runner.cleanup() for runner in runners.values()))


async def _listen(app: web.Application) -> web.AppRunner:
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, HOST, 0).start()
    return runner


def _stop_on(stop: asyncio.Event, ttl_s: float | None) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if ttl_s is not None:
        loop.call_later(ttl_s, stop.set)
    if fd := os.environ.get(PARENT_FD_ENV):

        def parent_spoke() -> None:
            if not os.read(int(fd), 4096):
                loop.remove_reader(int(fd))
                stop.set()

        loop.add_reader(int(fd), parent_spoke)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m fakes.world", description="The embedded cluster.")
    parser.add_argument("--config", type=Path, required=True, help="a WorldConfig as JSON")
    parser.add_argument("--ready", type=Path, required=True, help="written with the URLs once all servers answer")
    parser.add_argument("--ttl-s", type=float, default=None, help="stop after this many seconds")
    parser.add_argument("--ledger", type=Path, default=None, help="where the model servers write down what they send")
    args = parser.parse_args()
    asyncio.run(serve(WorldConfig.read(args.config), args.ready, args.ttl_s, args.ledger))


if __name__ == "__main__":
    main()
