"""The embedded cluster, assembled: every part of ``fakes/`` in one asyncio process.

``World`` is the cluster without sockets of its own API; ``serve`` adds the HTTP servers. ``python -m fakes.world`` runs
until SIGTERM, until its time is over, or until its parent is gone.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from fakes.clock import WallClock
from fakes.config import PlantedBug, WorldConfig
from fakes.control.api import control_app
from fakes.controllers.deployment import DeploymentController
from fakes.controllers.disruption import DisruptionController
from fakes.controllers.endpointslice import EndpointSliceController
from fakes.controllers.garbage import GarbageCollector
from fakes.controllers.hpa import HpaController
from fakes.controllers.leader import keep_leading
from fakes.controllers.leaderworkerset import LeaderWorkerSetController
from fakes.controllers.leaderworkerset_objects import admitted
from fakes.controllers.namespace import NamespaceController
from fakes.controllers.node_lifecycle import NodeLifecycleController
from fakes.controllers.pod_group_protection import PodGroupProtection
from fakes.controllers.replicaset import ReplicaSetController
from fakes.controllers.scheduler import Scheduler
from fakes.controllers.second_writer import SecondWriter
from fakes.controllers.statefulset import StatefulSetController
from fakes.kube.local import LocalKube
from fakes.kube.server import bookmark_period_s, make_app
from fakes.kube.store import Store
from fakes.memory import collect_seldom
from fakes.metrics.external_metrics import ExternalMetrics
from fakes.serving import Served, serve_while
from fakes.surroundings import Surroundings
from fakes.vllm.ledger import LedgerFile
from fakes.vllm.local_door import Switchboard


class World:
    """The embedded control plane and its surroundings, on one store and one loop. Needs a running event loop.

    With a ``switchboard`` nothing here needs a socket. Nothing stands aside: there is no real component here.
    """

    def __init__(
        self,
        config: WorldConfig,
        epoch: datetime,
        ledger: LedgerFile | None = None,
        switchboard: Switchboard | None = None,
    ) -> None:
        self.config = config = replace(config, aside=frozenset())
        self.wall = WallClock(epoch)
        self.store = Store(self.wall, Random(f"{config.seed}:store"), config.planted_bugs)
        self.surroundings = Surroundings(config, self.wall, self.kube, ledger, switchboard)
        self.timing = self.surroundings.timing
        self.cloud = self.surroundings.cloud
        self.scraper = self.surroundings.scraper
        self.metrics = self.surroundings.metrics
        self.external_metrics = ExternalMetrics(self.metrics, self.surroundings.gateway_scraper)
        self._metrics_apis = (self.metrics, self.external_metrics, self.surroundings.resource_metrics)
        self.gateway = self.surroundings.gateway

    async def run(self) -> None:
        """Until cancelled; a controller that raises is a defect and ends the world."""
        async with asyncio.TaskGroup() as tasks:
            for part in self._control_plane():
                tasks.create_task(part)
            tasks.create_task(self.surroundings.run())

    def _control_plane(self) -> list[Coroutine[Any, Any, None]]:
        kube, wall, timing, bugs = self.surroundings.kube, self.wall, self.timing, self.config.planted_bugs
        rng = self.surroundings.rng
        manager = partial(kube, "kube-controller-manager")
        return [
            DeploymentController(manager("deployment"), wall, rng("deployment"), timing).run(),
            ReplicaSetController(manager("replicaset"), wall, rng("replicaset"), timing, bugs).run(),
            *([SecondWriter(kube("gitops"), timing).run()] if PlantedBug.SECOND_WRITER_OF_REPLICAS in bugs else []),
            HpaController(manager("hpa"), wall, timing, self.metrics, bugs, self._metrics_apis).run(),
            EndpointSliceController(manager("endpointslice"), wall, timing, bugs).run(),
            DisruptionController(manager("disruption"), wall, bugs).run(),
            NodeLifecycleController(manager("node-lifecycle"), wall, timing).run(),
            StatefulSetController(manager("statefulset"), wall, admitted).run(),
            LeaderWorkerSetController(kube("leaderworkerset"), wall).run(),
            GarbageCollector(manager("garbage-collector"), wall, timing, bugs).run(),
            NamespaceController(manager("namespace"), wall, timing).run(),
            PodGroupProtection(manager("podgroup-protection")).run(),
            keep_leading(manager(), wall, timing, "kube-controller-manager"),
            keep_leading(kube("kube-scheduler"), wall, timing, "kube-scheduler"),
            Scheduler(kube("kube-scheduler"), wall, timing, bugs).run(),
        ]

    def kube(self, field_manager: str) -> LocalKube:
        """The API past all doors: for whoever breaks or judges this world."""
        return LocalKube(self.store, field_manager)


async def serve(config: WorldConfig, ready: Path, ttl_s: float | None, ledger: Path | None = None) -> None:
    """Runs a world and its servers until a signal, the end of ``ttl_s``, or the parent's end.

    ``ready`` is written with ``api_url``, ``gateway_url`` and ``control_url``. ``ledger`` is where the model servers
    write down what they send.
    """
    world = World(config, datetime.now(UTC), LedgerFile(ledger) if ledger is not None else None)
    api = make_app(
        world.store,
        [world.metrics, world.metrics.v1beta2, world.external_metrics, world.surroundings.resource_metrics],
        logs=world.surroundings.logs,
        bookmark_s=bookmark_period_s(config.time_scale),
    )
    apps = {
        "api_url": Served(api),
        "gateway_url": Served(world.gateway.app()),
        "gpu_metrics_url": Served(world.surroundings.gpu_scraper.app()),
        "control_url": Served(
            control_app(world.surroundings.control, {"time_scale": config.time_scale, "seed": config.seed}),
        ),
    }
    await serve_while(world.run(), apps, ready, ttl_s)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m fakes.world", description="The embedded cluster.")
    parser.add_argument("--config", type=Path, required=True, help="a WorldConfig as JSON")
    parser.add_argument("--ready", type=Path, required=True, help="written with the URLs once all servers answer")
    parser.add_argument("--ttl-s", type=float, default=None, help="stop after this many seconds")
    parser.add_argument("--ledger", type=Path, default=None, help="where the model servers write down what they send")
    args = parser.parse_args()
    collect_seldom()
    asyncio.run(serve(WorldConfig.read(args.config), args.ready, args.ttl_s, args.ledger))


if __name__ == "__main__":
    main()
