"""A node under test: a store, a kubelet on it, and containers whose every step the test decides."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from random import Random

from fakes.clock import WallClock
from fakes.config import PlantedBug, PoolConfig
from fakes.controllers.informer import Informer
from fakes.kube import LocalKube, Store
from fakes.nodes.assigned import AssignedPods
from fakes.nodes.images import Registry
from fakes.nodes.kubelet import Kubelet
from fakes.nodes.logs import PodLogs, Say
from fakes.nodes.machine import Machine
from fakes.nodes.script_container import ImageRuntime
from fakes.timing import Durations, Spread, Timing
from harness.kube.port import EVENT, NODE, POD, EventType, Json, NotFound

EXACT = Durations(
    launch=Spread(30), node_ready=Spread(8), device_plugin=Spread(12),
    image_pull=Spread(20), container_start=Spread(1), model_load=Spread(22),
)  # fmt: skip
POOL = PoolConfig("spot", "spot", gpus=4, nodes=1)


def now() -> float:
    return asyncio.get_running_loop().time()


class ScriptedContainer:
    """Serves from ``serve`` on, drains for ``drain_s`` after SIGTERM (None: ignores it), and keeps a log of signals."""

    def __init__(
        self,
        drain_s: float | None = 0.0,
        address: tuple[str, int] | None = ("127.0.0.1", 4000),
        *,
        answers_at_once: bool = False,
    ) -> None:
        self.address = address
        self._answers_at_once = answers_at_once
        self.drain_s = drain_s
        self.health: int | None = None
        self.log: list[tuple[str, float]] = []
        self.streams_cut = False
        self._code: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def serve(self, status: int | None = 200) -> None:
        self.health = status

    def exit(self, code: int) -> None:
        if not self._code.done():
            self.log.append((f"exit {code}", now()))
            self._code.set_result(code)

    def terminate(self) -> None:
        self.log.append(("TERM", now()))
        if self.drain_s is not None:
            asyncio.get_running_loop().call_later(self.drain_s, self.exit, 0)

    def kill(self) -> None:
        if not self._code.done():
            self.streams_cut = True
            self.exit(137)

    async def wait(self) -> int:
        return await asyncio.shield(self._code)

    def probe(self, path: str) -> int | Awaitable[int | None] | None:
        return self.health if self._answers_at_once else self._answer()

    async def _answer(self) -> int | None:
        return self.health

    def at(self, step: str) -> float:
        return next(t for name, t in self.log if name == step)


class ScriptedRuntime:
    """Makes what ``make`` makes, and keeps it."""

    def __init__(self, make: Callable[[], ScriptedContainer] = ScriptedContainer) -> None:
        self.make = make
        self.made: list[ScriptedContainer] = []
        self.of: dict[str, ScriptedContainer] = {}
        """The newest of each pod."""

    async def create(self, pod: Json, container: Json, say: Say) -> ScriptedContainer:
        self.made.append(self.make())
        self.of[pod["metadata"]["name"]] = self.made[-1]
        return self.made[-1]


class Bench:
    """``time_scale`` 1, exact durations. ``scripts``: containers run their commands, where a hollow one knows them.
    ``seen`` is every version of every pod, with the loop's time."""

    def __init__(self, *, provisioned: bool = False, runtime: ScriptedRuntime | None = None,
                 bugs: frozenset[PlantedBug] = frozenset(), timing: Timing | None = None,
                 scripts: bool = False, baked: tuple[str, ...] = ()) -> None:  # fmt: skip
        self.wall = WallClock(datetime(2026, 11, 29, 12, tzinfo=UTC))
        self.store = Store(self.wall, Random(1))
        self.kube = LocalKube(self.store, "test")
        self.registry = Registry()
        self.logs = PodLogs(self.wall)
        self.pods = Informer(self.kube, POD)
        self.nodes = Informer(self.kube, NODE)
        self.runtime = runtime or ScriptedRuntime()
        self.seen: list[tuple[float, EventType, Json]] = []
        self.nodes_seen: list[tuple[float, Json]] = []
        self.pods.on_change(lambda type, new, old: self.seen.append((now(), type, new)))
        self.nodes.on_change(lambda type, new, old: self.nodes_seen.append((now(), new)))
        self.kubelet = Kubelet(
            Machine("spot-1", POOL, 3, provisioned),
            LocalKube(self.store, "kubelet"),
            AssignedPods(self.pods),
            timing=timing or Timing(1.0, EXACT),
            wall=self.wall,
            rng=Random(2),
            runtime=ImageRuntime(timing or Timing(1.0, EXACT), {}) if scripts else self.runtime,
            bugs=bugs,
            registry=self.registry,
            logs=self.logs,
            baked=baked,
        )

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[Bench]:
        tasks = [asyncio.ensure_future(part.run()) for part in (self.pods, self.nodes, self.kubelet)]
        await self.pods.synced()
        try:
            yield self
        finally:
            for task in tasks:
                task.cancel()
            for result in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(result, Exception):
                    raise result

    async def add_pod(self, name: str = "llm-0", *, gpus: int = 1, **spec: object) -> Json:
        container: Json = {"name": "vllm", "image": "vllm/vllm-openai:v0.32.0"}
        container["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
        for key in ("readinessProbe", "startupProbe", "livenessProbe", "lifecycle"):
            if key in spec:
                container[key] = spec.pop(key)
        pod = {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"nodeName": "spot-1", "containers": [container], **spec},
        }
        return await self.kube.create(POD, pod)

    async def pod(self, name: str = "llm-0") -> Json:
        return await self.kube.get(POD, name, "default")

    async def until(self, holds: Callable[[], bool], within_s: float = 600) -> float:
        """The time at which ``holds`` did, looked at ten times a second."""
        async with asyncio.timeout(within_s):
            while not holds():
                await asyncio.sleep(0.1)
        return now()

    async def until_ready(self, name: str = "llm-0") -> float:
        await self.until(lambda: self.condition(name, "Ready") == "True")
        return self.first(name, lambda pod: condition(pod, "Ready") == "True")

    async def until_gone(self, name: str = "llm-0") -> float:
        return await self.until(lambda: ("default", name) not in self.pods.objects)

    def condition(self, name: str, type: str) -> str | None:
        pod = self.pods.objects.get(("default", name))
        return condition(pod, type) if pod else None

    def first(self, name: str, holds: Callable[[Json], bool]) -> float:
        return next(t for t, _, pod in self.seen if pod["metadata"]["name"] == name and holds(pod))

    def phase(self, name: str = "llm-0") -> str | None:
        pod = self.pods.objects.get(("default", name))
        return pod["status"]["phase"] if pod else None

    def last(self, name: str = "llm-0") -> Json:
        return next(pod for _, _, pod in reversed(self.seen) if pod["metadata"]["name"] == name)

    async def events(self, name: str = "llm-0") -> list[tuple[str, str]]:
        found = (await self.kube.list(EVENT)).items
        return [(e["reason"], e["message"]) for e in found if e["involvedObject"]["name"] == name]


def condition(obj: Json, type: str) -> str | None:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((c["status"] for c in conditions if c["type"] == type), None)


async def expect_absent(kube: LocalKube, name: str) -> None:
    try:
        await kube.get(POD, name, "default")
    except NotFound:
        return
    raise AssertionError(f"pod {name} is still there")
