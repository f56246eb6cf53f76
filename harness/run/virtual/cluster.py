"""The embedded world in this process, as a run needs it: its API, its cloud, its gateway, its metrics."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from fakes.config import WorldConfig
from fakes.gateway.local import LocalEntry
from fakes.kube.discovery import version_info
from fakes.kube.store import Store
from fakes.metrics.custom_metrics import CustomMetrics
from fakes.vllm.ledger import LedgerFile
from fakes.vllm.local_door import Switchboard
from fakes.world import World
from harness.faults.fidelity import VIRTUAL
from harness.kube.port import Json, Kube, api_error
from harness.run.virtual.control import LocalWorldControl
from harness.run.virtual.senses import LocalSenses
from harness.targets.embedded import EmbeddedTarget

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
"""The wall time at which every virtual world begins: a run of today and one of next year write the same stamps."""
_METRICS = "/apis/custom.metrics.k8s.io/v1beta2/"


class VirtualTarget:
    """What the report says of it."""

    name = VIRTUAL
    real: tuple[str, ...] = ("plan, faults, recorder, history, checks and report of the harness",)
    emulated: tuple[str, ...] = (
        "time (the event loop leaps from timer to timer; no real moment was measured)",
        "the network (calls within one process: no sockets, no latency, no loss)",
        "the load generator (planned arrivals go straight into the gateway, no Locust)",
        "the course of the experiment (no Chaos Toolkit)", "the Kubernetes API (in process, no HTTP, no client)",
        *EmbeddedTarget.emulated,
    )  # fmt: skip
    versions: Mapping[str, str] = {}


class Cluster:
    """``ledger`` is where the model servers write down what they send; it is closed with ``close``."""

    def __init__(self, config: WorldConfig, ledger: Path | None = None) -> None:
        switchboard = Switchboard()
        self._ledger = LedgerFile(ledger) if ledger is not None else None
        self.world = World(config, EPOCH, self._ledger, switchboard)
        self.entry = LocalEntry(self.world.gateway, switchboard)
        self.control = LocalWorldControl(self.world.surroundings.control)
        self.senses = LocalSenses(self.entry, self.world.metrics)

    def close(self) -> None:
        if self._ledger is not None:
            self._ledger.close()

    def kube(self, field_manager: str = "gpu-harness") -> Kube:
        return self.world.kube(field_manager)

    def raw_api(self) -> LocalRawApi:
        return LocalRawApi(self.world.metrics, self.world.store)


class LocalRawApi:
    """A GET of what the recorder asks for beyond objects: custom metrics, the version, and the time of day."""

    def __init__(self, metrics: CustomMetrics, store: Store) -> None:
        self._metrics = metrics.v1beta2
        self._store = store

    async def raw(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        if path == "/version":
            return version_info(self._store)
        status, body = await self._metrics.handle(path.removeprefix(_METRICS), query or {})
        if status != 200:
            raise api_error(status, body)
        return body

    async def time_of_day(self) -> datetime:
        return self._store.wall.now().replace(microsecond=0)


class GatewayText:
    """The gateway's own metrics, as the recorder scrapes them."""

    def __init__(self, entry: LocalEntry) -> None:
        self._entry = entry

    async def text(self) -> str:
        return self._entry.metrics_text()

    async def close(self) -> None:
        return None
