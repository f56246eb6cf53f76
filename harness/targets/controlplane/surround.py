"""The process of everything around a real control plane: ``fakes.surroundings`` over HTTP.

``python -m harness.targets.controlplane.surround`` runs until SIGTERM or until its parent is gone.
"""

from __future__ import annotations

import argparse
import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path

from fakes.clock import WallClock
from fakes.config import WorldConfig
from fakes.control.api import control_app
from fakes.metrics.api_server import MetricsApi, metrics_app
from fakes.metrics.external_metrics import ExternalMetrics
from fakes.serving import Served, on_loopback, serve_while
from fakes.surroundings import Fleet, Surroundings
from fakes.vllm.ledger import LedgerFile
from harness.kube.http import HttpKube
from harness.kube.port import Kube
from harness.kube.shared_watches import SharedWatches, SharingKube


async def surround(
    config: WorldConfig,
    kubeconfig: Path,
    ready: Path,
    *,
    serving: ssl.SSLContext,
    kubelets: ssl.SSLContext | None = None,
    ledger: Path | None,
    fleet: Fleet | None = None,
    bind: Callable[[], socket.socket] = on_loopback,
) -> None:
    """``ready`` is written with ``gateway_url``, ``control_url`` and ``metrics_url`` once they answer. ``serving`` is
    the identity of the metrics APIs, ``kubelets`` that of hollow kubelets, where somebody asks them. ``fleet``: real
    machines in place of hollow ones; ``bind`` makes the sockets that all is served on."""
    async with AsyncExitStack() as connections:
        kubes: dict[str, Kube] = {}

        def connection(field_manager: str) -> HttpKube:
            opened = HttpKube(kubeconfig, field_manager=field_manager)
            connections.push_async_callback(opened.close)
            return opened

        watches = SharedWatches(connection("surroundings"))

        def kube(field_manager: str) -> Kube:
            """One connection pool for each component, and for all kubelets together; the watches are one for all."""
            if field_manager not in kubes:
                kubes[field_manager] = SharingKube(connection(field_manager), watches)
            return kubes[field_manager]

        wall = WallClock(datetime.now(UTC))
        books = LedgerFile(ledger) if ledger is not None else None
        around = Surroundings(config, wall, kube, books, fleet=fleet, kubelet_tls=kubelets)
        metrics: list[MetricsApi] = [around.metrics, around.metrics.v1beta2, ExternalMetrics(around.metrics)]
        apps = {
            "gateway_url": Served(around.gateway.app()),
            "control_url": Served(
                control_app(around.control, {"time_scale": config.time_scale, "seed": config.seed}),
            ),
            "gpu_metrics_url": Served(around.gpu_scraper.app()),
            "metrics_url": Served(metrics_app(metrics), serving),
        }
        await serve_while(around.run(), apps, ready, ttl_s=None, bind=bind)


def front_door(certificate: Path, key: Path, front_proxy_authority: Path) -> ssl.SSLContext:
    """TLS that talks to the API server's aggregator only, which proves itself by its front-proxy certificate."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(front_proxy_authority))
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(certificate, key)
    return context


def arguments(module: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"python -m {module}")
    for name in ("config", "kubeconfig", "ready", "certificate", "key", "front-proxy-authority"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--ledger", type=Path, default=None)
    return parser


def main() -> None:
    args = arguments("harness.targets.controlplane.surround").parse_args()
    door = front_door(args.certificate, args.key, args.front_proxy_authority)
    kubelets = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    kubelets.load_cert_chain(args.certificate, args.key)
    config = WorldConfig.read(args.config)
    asyncio.run(surround(config, args.kubeconfig, args.ready, serving=door, kubelets=kubelets, ledger=args.ledger))


if __name__ == "__main__":
    main()
