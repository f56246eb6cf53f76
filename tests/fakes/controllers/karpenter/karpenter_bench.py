"""A cloud with hollow nodes and Karpenter's rules on them. Scheduling and budgets are the test's own, step by step."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from random import Random

from fakes.clock import WallClock
from fakes.cloud.cloud import Cloud, Instance
from fakes.cloud.node_controller import CloudNodeController
from fakes.config import PlantedBug, PoolConfig
from fakes.controllers.informer import Informer
from fakes.controllers.karpenter.disruption import Disruption
from fakes.controllers.karpenter.lifecycle import NodeClaimLifecycle
from fakes.controllers.karpenter.marks import ClaimMarks
from fakes.controllers.karpenter.nodepool_status import NodePoolStatus
from fakes.controllers.karpenter.provisioner import Provisioner
from fakes.controllers.karpenter.termination import Termination
from fakes.controllers.node_lifecycle import NodeLifecycleController
from fakes.kube import LocalKube, Store
from fakes.nodes.assigned import AssignedPods
from fakes.nodes.kubelet import Kubelet
from fakes.nodes.script_container import ImageRuntime
from fakes.timing import Durations, Spread, Timing
from harness.kube.port import EVENT, NODE, NODE_CLAIM, NODE_POOL, PDB, POD, EventType, Json, PatchType, Resource

EXACT = Durations(
    launch=Spread(30), node_ready=Spread(8), device_plugin=Spread(10),
    image_pull=Spread(20), container_start=Spread(1), model_load=Spread(22),
)  # fmt: skip
SPOT = PoolConfig("spot", "spot", nodes=1, stock=1)
ON_DEMAND = PoolConfig("on-demand", "on-demand", nodes=0, stock=3)
GPU = "nvidia.com/gpu"


def now() -> float:
    return asyncio.get_running_loop().time()


class Bench:
    def __init__(
        self, *pools: PoolConfig, bugs: frozenset[PlantedBug] = frozenset(), durations: Durations = EXACT
    ) -> None:
        self.wall = WallClock(datetime(2026, 11, 29, 12, tzinfo=UTC))
        self.store = Store(self.wall, Random(1))
        self.kube = LocalKube(self.store, "test")
        self.timing = Timing(1.0, durations)
        self.cloud = Cloud(pools or (SPOT, ON_DEMAND), self.timing, Random(3), self._boot, self._lost)
        self.pods = Informer(self.kube, POD)
        self.nodes = Informer(self.kube, NODE)
        self.claims = Informer(self.kube, NODE_CLAIM)
        self.claims_seen: list[tuple[float, EventType, Json]] = []
        self.claims.on_change(lambda type, new, old: self.claims_seen.append((now(), type, new)))
        self.nodes_seen: list[tuple[float, EventType, Json]] = []
        self.nodes.on_change(lambda type, new, old: self.nodes_seen.append((now(), type, new)))
        self.evictions: list[tuple[float, str, bool]] = []
        self._assigned = AssignedPods(self.pods)
        self._kubelets: dict[str, Kubelet] = {}
        self._tasks: asyncio.TaskGroup | None = None
        common = (self.wall, self.timing, self.cloud)
        provisioner = Provisioner(self._as("karpenter"), *common)
        self._parts = (
            self.pods, self.nodes, self.claims, provisioner,
            ClaimMarks(self._as("karpenter"), self.wall, self.timing, provisioner.view),
            NodePoolStatus(self._as("karpenter"), self.wall, provisioner.view),
            Disruption(self._as("karpenter"), self.wall, self.timing, provisioner),
            NodeClaimLifecycle(self._as("karpenter"), *common),
            Termination(self._as("karpenter"), *common, bugs),
            CloudNodeController(self._as("cloud"), self.cloud),
            NodeLifecycleController(self._as("kcm"), self.wall, self.timing),
        )  # fmt: skip

    def _as(self, manager: str) -> LocalKube:
        return LocalKube(self.store, manager)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[Bench]:
        async def live() -> None:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                for part in self._parts:
                    tasks.create_task(part.run())
                self.cloud.start()

        life = asyncio.ensure_future(live())
        try:
            await asyncio.sleep(2)
            yield self
        finally:
            self.cloud.stop()
            life.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await life

    def _boot(self, instance: Instance) -> None:
        kubelet = Kubelet(
            instance.machine, self._as("kubelet"), self._assigned, timing=self.timing, wall=self.wall, rng=Random(5),
            runtime=ImageRuntime(self.timing, {}),
        )  # fmt: skip
        self._kubelets[instance.node] = kubelet
        assert self._tasks is not None
        self._tasks.create_task(kubelet.run())

    def _lost(self, instance: Instance) -> None:
        self._kubelets[instance.node].kill()

    async def add_pod(self, name: str, gpus: int = 1, *, node: str = "", exit_s: float = 5, **spec: object) -> Json:
        limits = {GPU: str(gpus)} if gpus else {}
        return await self.kube.create(
            POD,
            {
                "metadata": {
                    "name": name, "namespace": "default", "labels": {"app": "llm"},
                    "annotations": {"gpu-harness.dev/exit-s": str(exit_s)},
                },
                "spec": {
                    "containers": [{"name": "c", "image": "busybox:1", "resources": {"limits": limits}}],
                    "terminationGracePeriodSeconds": 600, **({"nodeName": node} if node else {}), **spec,
                },
            },
        )  # fmt: skip

    async def add_unschedulable(self, name: str, gpus: int = 1, **spec: object) -> None:
        """A pod that the scheduler could not place."""
        await self.add_pod(name, gpus, **spec)
        said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
        await self.kube.patch(
            POD, name, {"status": {"conditions": [said]}}, "default", type=PatchType.STRATEGIC, subresource="status"
        )

    async def fill_spot(self) -> None:
        """So that nothing fits there."""
        await self.add_pod("full", 4, node="spot-1")

    async def add_budget(self, allowed: int) -> None:
        budget = {
            "metadata": {"name": "llm", "namespace": "default"},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "llm"}}},
        }
        await self.kube.create(PDB, budget)
        await self.allow(allowed)

    async def allow(self, disruptions: int) -> None:
        status = {
            "disruptionsAllowed": disruptions, "currentHealthy": 3, "desiredHealthy": 2, "expectedPods": 3,
            "observedGeneration": 1,
        }  # fmt: skip
        await self.kube.patch(PDB, "llm", {"status": status}, "default", subresource="status")

    async def change_pool(self, name: str, **spec: object) -> None:
        """Patches parts of the NodePool's spec; ``template`` and ``disruption`` are merged."""
        await self.kube.patch(NODE_POOL, name, {"spec": spec})

    async def until_initialized(self, *names: str) -> None:
        await self.until(lambda: all(condition(self.claim(n), "Initialized") == ("True", "Initialized") for n in names))

    async def until(self, holds: Callable[[], bool], within_s: float = 300, step_s: float = 0.2) -> float:
        async with asyncio.timeout(within_s):
            while not holds():
                await asyncio.sleep(step_s)
        return now()

    async def until_running(self, *names: str) -> None:
        def running(name: str) -> bool:
            pod = self.pods.objects.get(("default", name))
            return pod is not None and pod["status"]["phase"] == "Running"

        await self.until(lambda: all(running(n) for n in names))

    def claim(self, name: str) -> Json | None:
        return self.claims.objects.get(("", name))

    def node(self, name: str) -> Json | None:
        return self.nodes.objects.get(("", name))

    def pod(self, name: str) -> Json | None:
        return self.pods.objects.get(("default", name))

    def state(self, name: str) -> str:
        return self.cloud.get(f"i-{name}").state.value

    async def reasons(self, name: str) -> list[str]:
        found = (await self.kube.list(EVENT)).items
        return [e["reason"] for e in found if e["involvedObject"]["name"] == name]

    async def messages(self, name: str) -> list[tuple[str, str]]:
        """(reason, message) of the object's events."""
        found = (await self.kube.list(EVENT)).items
        return [(e["reason"], e["message"]) for e in found if e["involvedObject"]["name"] == name]

    async def names(self, resource: Resource) -> list[str]:
        return [o["metadata"]["name"] for o in (await self.kube.list(resource)).items]


def condition(obj: Json | None, type: str) -> tuple[str, str] | None:
    """Status and reason."""
    conditions = ((obj or {}).get("status") or {}).get("conditions") or ()
    return next(((c["status"], c.get("reason", "")) for c in conditions if c["type"] == type), None)
