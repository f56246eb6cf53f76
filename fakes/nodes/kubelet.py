"""A hollow kubelet: one node on the Kube port, whose containers are whatever its runtime makes."""

from __future__ import annotations

import asyncio
from random import Random

from fakes.clock import WallClock
from fakes.config import PlantedBug
from fakes.nodes.assigned import AssignedPods
from fakes.nodes.client import NodeClient
from fakes.nodes.devices import Devices
from fakes.nodes.events import EventRecorder
from fakes.nodes.images import ImageStore
from fakes.nodes.labels import GPU_RESOURCE
from fakes.nodes.machine import Machine
from fakes.nodes.node_agent import NodeAgent
from fakes.nodes.pod_worker import PodWorker
from fakes.nodes.runtime import Runtime
from fakes.nodes.services import NodeServices
from fakes.timing import Timing
from harness.kube.port import EventType, Json, Kube


class Kubelet:
    """``run`` lasts until it is cancelled, or until ``kill``: the machine lost its power."""

    def __init__(
        self,
        machine: Machine,
        kube: Kube,
        pods: AssignedPods,
        *,
        timing: Timing,
        wall: WallClock,
        rng: Random,
        runtime: Runtime,
        bugs: frozenset[PlantedBug] = frozenset(),
    ) -> None:
        client = NodeClient(kube)
        gpus = tuple(f"GPU-{machine.name}-{n}" for n in range(machine.pool.gpus))
        self.machine = machine
        self._pods = pods
        self._node = NodeServices(
            machine=machine,
            client=client,
            timing=timing,
            wall=wall,
            rng=rng,
            runtime=runtime,
            images=ImageStore(timing, rng),
            devices=Devices(GPU_RESOURCE, gpus),
            events=EventRecorder(client, wall, "kubelet", machine.name),
            bugs=bugs,
        )
        self._agent = NodeAgent(self._node)
        self._workers: dict[str, PodWorker] = {}
        self._addresses = 0
        self._tasks: asyncio.TaskGroup | None = None
        self._life: asyncio.Future[None] | None = None
        self._dead = False

    async def run(self) -> None:
        if self._dead:
            return
        self._life = asyncio.ensure_future(self._live())
        try:
            await self._life
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if not self._dead or (current is not None and current.cancelling()):
                raise
        finally:
            self._off()

    def kill(self) -> None:
        """Power loss: sockets are reset at once, and nothing more is written."""
        self._dead = True
        self._off()
        if self._life is not None:
            self._life.cancel()

    async def _live(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            tasks.create_task(self._node.events.run())
            tasks.create_task(self._agent.run())
            await self._agent.registered.wait()
            self._pods.subscribe(self.machine.name, self._on_pod)

    def _off(self) -> None:
        self._node.client.cut()
        self._pods.unsubscribe(self.machine.name)
        for worker in self._workers.values():
            worker.kill()

    def _on_pod(self, type: EventType, pod: Json) -> None:
        uid = pod["metadata"]["uid"]
        worker = self._workers.get(uid)
        if type is EventType.DELETED:
            if worker is not None:
                worker.removed()
        elif worker is not None:
            worker.update(pod)
        else:
            self._start(uid, pod)

    def _start(self, uid: str, pod: Json) -> None:
        assert self._tasks is not None, "pods are subscribed to by the running kubelet only"
        self._addresses += 1
        worker = PodWorker(self._node, pod, self.machine.pod_address(self._addresses))
        self._workers[uid] = worker
        task = self._tasks.create_task(worker.run())
        task.add_done_callback(lambda _: self._workers.pop(uid, None))
