"""What stands before the replicas, in a pod of its own: the gateway, and the metrics that the autoscaler reads.

``python -m harness.targets.kind.front FOLDER`` runs on the control-plane node, on the node's own network: from there
the addresses of pods lead somewhere, and Docker publishes the gateway's port. FOLDER has ``world.json``,
``kubeconfig``, the certificate of the metrics server with its key, and the authority of those who may ask it.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from aiohttp import web

from fakes.clock import WallClock
from fakes.cloud.cloud import Cloud
from fakes.config import WorldConfig
from fakes.control.api import control_app
from fakes.control.control import Control
from fakes.control.wiring import wire_links, wire_traffic
from fakes.controllers.informer import Informer
from fakes.gateway.gateway import Gateway
from fakes.metrics.api_server import MetricsApi, metrics_app
from fakes.metrics.custom_metrics import CustomMetrics
from fakes.metrics.external_metrics import ExternalMetrics
from fakes.metrics.gateway_scraper import GatewayScraper
from fakes.metrics.scraper import Scraper
from fakes.nodes.announcer import Announcer
from fakes.serving import Served
from fakes.timing import PRESETS, Timing
from harness.kube.http import HttpKube
from harness.kube.port import NODE, POD, Kube
from harness.targets.controlplane.surround import front_door
from harness.targets.kind.cluster_file import CONTROL_PORT, GATEWAY_PORT, METRICS_PORT

MakeKube = Callable[[str], Kube]


class Front:
    def __init__(self, config: WorldConfig, wall: WallClock, kube: MakeKube) -> None:
        timing, namespace = Timing(config.time_scale, PRESETS[config.preset]), config.gateway_namespace
        self.scraper = Scraper(kube("prometheus"), timing, namespace, "")
        self.metrics = CustomMetrics(self.scraper, wall, None, config.planted_bugs)
        self.gateway = Gateway(
            kube("gateway"), namespace, config.gateway_service, Random(f"{config.seed}:gateway"), config.planted_bugs,
            replace(
                config.gateway,
                endpoints_lag_s=timing.clock_s(config.gateway.endpoints_lag_s),
                hold_s=timing.clock_s(config.gateway.hold_s),
            ),
        )  # fmt: skip
        self._nodes = Informer(kube("gateway"), NODE)
        pods = Informer(kube("announcer"), POD, namespace)
        announcer = Announcer(kube("announcer"), pods)
        self.gateway_scraper = GatewayScraper(timing, self._gateway_text)
        self.external = ExternalMetrics(self.metrics, self.gateway_scraper)
        # Pools, instances and machines are the business of the process that can work on containers.
        nothing = Cloud((), timing, Random(0), boot=lambda i: None, lost=lambda i: None)
        self.control = Control(nothing)
        wire_links(self.control, self.gateway, lambda: [name for _, name in self._nodes.objects])
        wire_traffic(self.control, self.gateway, self.scraper, self.metrics, timing)
        self._parts = (pods, announcer, self._nodes, self.scraper, self.gateway_scraper, self.gateway)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for part in self._parts:
                tasks.create_task(part.run())

    def _gateway_text(self) -> str:
        return self.gateway.metrics.text(self.gateway.router, len(self.gateway.forwarder.queue))


async def serve(folder: Path) -> None:
    config = WorldConfig.read(folder / "world.json")
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with AsyncExitStack() as open_things:
        kubes: dict[str, HttpKube] = {}

        def kube(client: str) -> Kube:
            if client not in kubes:
                kubes[client] = HttpKube(folder / "kubeconfig", field_manager=client)
                open_things.push_async_callback(kubes[client].close)
            return kubes[client]

        front = Front(config, WallClock(datetime.now(UTC)), kube)
        door = front_door(folder / "tls.crt", folder / "tls.key", folder / "front-proxy-ca.crt")
        apis: list[MetricsApi] = [front.metrics, front.metrics.v1beta2, front.external]
        info = {"time_scale": config.time_scale, "seed": config.seed}
        for port, served in (
            (GATEWAY_PORT, Served(front.gateway.app())),
            (CONTROL_PORT, Served(control_app(front.control, info))),
            (METRICS_PORT, Served(metrics_app(apis), door)),
        ):
            runner = web.AppRunner(served.app, access_log=None, shutdown_timeout=0.2, handler_cancellation=True)
            await runner.setup()
            open_things.push_async_callback(runner.cleanup)
            await web.TCPSite(runner, "0.0.0.0", port, ssl_context=served.tls).start()  # a pod's port
        running, stopping = asyncio.create_task(front.run()), asyncio.create_task(stop.wait())
        await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            await running  # shows why
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
