"""A fresh store, the port on it, and the real HTTP server on a free port."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest
import yaml
from aiohttp import web

from fakes.clock import WallClock
from fakes.kube import LocalKube, Store, make_app
from fakes.metrics.resource_metrics import ResourceMetrics, Uses
from fakes.timing import Timing

START = datetime(2026, 11, 29, 12, tzinfo=UTC)

KubeFactory = Callable[[int], LocalKube]


@pytest.fixture
async def store() -> Store:
    return Store(WallClock(START), Random(1))


@pytest.fixture
async def kube(store: Store) -> LocalKube:
    return LocalKube(store, "test")


@pytest.fixture
async def kube_with_window() -> KubeFactory:
    return lambda window: LocalKube(Store(WallClock(START), Random(1), window=window), "test")


@dataclass(frozen=True, slots=True)
class Served:
    url: str
    kubeconfig: Path
    store: Store
    kube: LocalKube
    runner: web.AppRunner
    refused: list[str]
    """Paths of the requests that were answered with 429."""
    uses: dict[str, Uses]
    """What the containers of each node take."""


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    store = Store(WallClock(datetime.now(UTC)), Random(1), window=200)  # kubectl compares ages with its own clock
    refused: list[str] = []
    uses: dict[str, Uses] = {}
    metrics = ResourceMetrics(LocalKube(store, "metrics-server"), store.wall, Timing(), lambda: uses)
    app = make_app(store, [metrics], bookmark_s=0.05)

    async def note(request: web.Request, response: web.StreamResponse) -> None:
        if response.status == 429:
            refused.append(request.path)

    app.on_response_prepare.append(note)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    url = f"http://{host}:{port}"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "embedded",
        "clusters": [{"name": "embedded", "cluster": {"server": url}}],
        "users": [{"name": "embedded", "user": {}}],
        "contexts": [
            {"name": "embedded", "context": {"cluster": "embedded", "user": "embedded", "namespace": "default"}}
        ],
    }
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    yield Served(url, path, store, LocalKube(store, "test"), runner, refused, uses)
    await runner.cleanup()
    assert store.tampered() == []
