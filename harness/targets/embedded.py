"""The embedded cluster: one process of ours on 127.0.0.1 with free ports, needing nothing but pip."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from fakes.config import WorldConfig
from fakes.kube.server import bookmark_period_s
from harness.errors import TargetError
from harness.faults.pick import FleetNode
from harness.processes.children import Child, spawn
from harness.stack.patience import unless
from harness.targets.base import Connection
from harness.targets.manifests import PROCESSES_TIMEOUT_S, apply, wait_until_available
from harness.targets.wanted import Places, Wanted, planned_fleet

START_TIMEOUT_S = 30
AVAILABLE_TIMEOUT_S = 60
STOP_GRACE_S = 3
READY_FILE = "world-ready.json"


def kubeconfig_text(api_url: str) -> str:
    """A kubeconfig without credentials: the embedded API server asks for none."""
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "embedded", "cluster": {"server": api_url}}],
            "users": [{"name": "embedded", "user": {}}],
            "contexts": [{"name": "embedded", "context": {"cluster": "embedded", "user": "embedded"}}],
            "current-context": "embedded",
        }
    )


def connection_from(config: WorldConfig, folder: Path) -> Connection:
    """The connection to a world that has written its ready file into ``folder``; writes the kubeconfig beside it."""
    urls = json.loads((folder / READY_FILE).read_text())
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(kubeconfig_text(urls["api_url"]))
    return Connection(
        target="embedded",
        kubeconfig=kubeconfig.resolve(),
        service_url=urls["gateway_url"],
        control_url=urls["control_url"],
        namespace=config.gateway_namespace,
        time_scale=config.time_scale,
        bookmark_s=bookmark_period_s(config.time_scale),
    )


class EmbeddedTarget:
    """Starts ``python -m fakes.world``; the process ends with ours, through its parent pipe."""

    name = "embedded"
    real: tuple[str, ...] = (
        "HTTP and SSE over loopback", "the Kubernetes API as clients see it", "the official Kubernetes client",
        "Locust", "Chaos Toolkit",
    )  # fmt: skip
    emulated: tuple[str, ...] = (
        "the control plane (scheduler, HPA, Deployment, PDB, node lifecycle, Karpenter's rules)", "nodes and kubelets",
        "GPUs and device plugin", "the cloud and its spot interruptions", "vLLM (engine model, its HTTP and SSE)",
        "the gateway", "the metrics pipeline",
    )  # fmt: skip

    versions: Mapping[str, str] = {}
    """Of real programs, which it has none of."""

    def __init__(self, wanted: Wanted, places: Places) -> None:
        self._wanted = wanted
        self._config = wanted.config
        self._places = places
        self._folder = places.folder
        self.log = places.logs / "world.log"
        self.child: Child | None = None

    def planned_fleet(self) -> Sequence[FleetNode]:
        return planned_fleet(self._config)

    async def up(self) -> Connection:
        config, ready = self._folder / "world.json", self._folder / READY_FILE
        config.write_text(self._config.to_json())
        ready.unlink(missing_ok=True)
        argv = [sys.executable, "-m", "fakes.world", "--config", str(config), "--ready", str(ready)]
        argv += ["--ledger", str(self._places.ledger)] if self._places.ledger else []
        self.child = await spawn("the embedded cluster", argv, env={}, log=self.log)
        connection = await self._connection(ready)
        async with connection.kube() as kube:
            await apply(kube, self._wanted.objects)
            if self._wanted.selector:
                namespace, selector = self._config.gateway_namespace, self._wanted.selector
                patience_s = PROCESSES_TIMEOUT_S if self._config.processes else AVAILABLE_TIMEOUT_S
                await unless(self._check_alive, wait_until_available(kube, namespace, selector, patience_s))
        return connection

    async def down(self) -> None:
        if self.child is not None:
            await self.child.stop(STOP_GRACE_S)

    def died(self) -> str | None:
        if self.child is None or self.child.returncode is None:
            return None
        return self.child.how_it_ended()

    async def _connection(self, ready: Path) -> Connection:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(START_TIMEOUT_S):
                while not ready.exists() and self.died() is None:
                    await asyncio.sleep(0.02)
        if not ready.exists():
            raise self._not_up(self.died() or f"not ready after {START_TIMEOUT_S} s")
        return connection_from(self._config, self._folder)

    def _check_alive(self) -> None:
        if (why := self.died()) is not None:
            raise self._not_up(why)

    def _not_up(self, why: str) -> TargetError:
        lines = self.child.last_lines() if self.child else []
        return TargetError(
            "\n    ".join([f"the embedded cluster did not come up: {why}", *lines]), hint=f"its log: {self.log}"
        )
