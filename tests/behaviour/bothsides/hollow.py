"""The nodes that both sides share: hollow kubelets whose containers do what a scenario tells them.

Image tags speak: ``app:v1`` runs and answers its probes, ``app:bad`` never becomes ready, ``app:crash`` ends by itself
with exit code 1 after a second.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from random import Random

from fakes.clock import WallClock
from fakes.config import PoolConfig
from fakes.controllers.informer import Informer
from fakes.kube.selectors import match_label_selector
from fakes.nodes.assigned import AssignedPods
from fakes.nodes.kubelet import Kubelet
from fakes.nodes.logs import Say
from fakes.nodes.machine import Machine
from fakes.nodes.runtime import Container, PlainContainer
from fakes.timing import Durations, Spread, Timing
from harness.kube.port import POD, Json, Kube

DURATIONS = Durations(
    node_ready=Spread(0.5, 0),
    device_plugin=Spread(0.5, 0),
    image_pull=Spread(0.1, 0),
    container_start=Spread(1.2, 0),
    hpa_sync_s=1,
    lease_renew_s=1,
    node_monitor_s=0.5,
    node_monitor_grace_s=6,
)
"""The real components are given the same figures by their flags; what an object itself says is never scaled."""


EXIT_S = 2.0
"""From SIGTERM to the end of a process: long enough to be a state of its own in every count."""


@dataclass(slots=True)
class Health:
    """What the containers of a scenario answer to probes, changed while it runs."""

    sick: list[dict[str, str]] = field(default_factory=list)
    """Label sets; a pod that has all labels of one of them answers 503."""

    def status(self, pod: Json, container: Json) -> int:
        labels = pod["metadata"].get("labels") or {}
        if str(container.get("image", "")).endswith(":bad"):
            return 503
        return 503 if any(match_label_selector({"matchLabels": s}, labels) for s in self.sick) else 200


class Answering(PlainContainer):
    """A plain process that answers its probes as ``Health`` says."""

    def __init__(self, pod: Json, container: Json, timing: Timing, health: Health) -> None:
        super().__init__(pod, timing)
        self._pod, self._container, self._health = pod, container, health
        self._exit_after_s = EXIT_S
        if str(container.get("image", "")).endswith(":crash"):
            self._loop.call_later(1.0, self._exit, 1)

    def probe(self, path: str) -> int | None:
        return self._health.status(self._pod, self._container)


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """One node of a scenario. ``labels`` and ``taints`` are patched on before the scenario begins."""

    name: str
    gpus: int = 4
    zone: str = "zone-a"
    cpu: int = 32
    memory_gib: int = 64
    labels: dict[str, str] = field(default_factory=dict)
    taints: tuple[Json, ...] = ()

    def pool(self) -> PoolConfig:
        return PoolConfig(
            name="pool", capacity_type="on-demand", gpus=self.gpus, zone=self.zone, cpu=self.cpu,
            memory_gib=self.memory_gib, stock=100,
        )  # fmt: skip


class HollowNodes:
    """Kubelets that come and go. One watch of all pods serves them, as in a world."""

    def __init__(self, kube: Kube, wall: WallClock, tasks: asyncio.TaskGroup, health: Health) -> None:
        self._kube = kube
        self._wall = wall
        self._tasks = tasks
        self._timing = Timing(1.0, DURATIONS)
        self._informer = Informer(kube, POD)
        self._pods = AssignedPods(self._informer)
        self._health = health
        self._kubelets: dict[str, Kubelet] = {}
        self._indices: dict[str, int] = {}

    async def run(self) -> None:
        await self._informer.run()

    def start(self, spec: NodeSpec) -> None:
        """Power on. A node that was there before keeps its address range."""
        index = self._indices.setdefault(spec.name, len(self._indices) + 1)
        kubelet = Kubelet(
            Machine(spec.name, spec.pool(), index, provisioned=False),
            self._kube,
            self._pods,
            timing=self._timing,
            wall=self._wall,
            rng=Random(spec.name),
            runtime=self,
        )
        self._kubelets[spec.name] = kubelet
        self._tasks.create_task(kubelet.run())

    def stop(self, name: str) -> None:
        """Power off: no lease, no status, no goodbye."""
        if kubelet := self._kubelets.pop(name, None):
            kubelet.kill()

    def stop_all(self) -> None:
        for name in list(self._kubelets):
            self.stop(name)

    async def create(self, pod: Json, container: Json, say: Say) -> Container:
        """The runtime of all its nodes."""
        return Answering(pod, container, self._timing, self._health)
