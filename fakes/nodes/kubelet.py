"""A hollow kubelet: one node on the Kube port, whose containers are whatever its runtime makes. Its faults are its
methods."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from random import Random

from fakes.clock import WallClock
from fakes.config import PlantedBug
from fakes.controllers.placement import matches_node
from fakes.nodes.admission import allocate_devices, refuse_by_fit, refuse_under_pressure
from fakes.nodes.assigned import AssignedPods
from fakes.nodes.client import NodeClient
from fakes.nodes.device_plugin import DevicePlugin
from fakes.nodes.devices import DeviceManager
from fakes.nodes.dra_driver import DraDriver
from fakes.nodes.events import EventRecorder
from fakes.nodes.eviction import EvictionManager
from fakes.nodes.findings import Findings
from fakes.nodes.gpus import Gpu
from fakes.nodes.images import ImageStore, Registry
from fakes.nodes.labels import GPU_RESOURCE, node_labels
from fakes.nodes.logs import PodLogs
from fakes.nodes.machine import Machine
from fakes.nodes.node_agent import NodeAgent
from fakes.nodes.node_status import allocatable
from fakes.nodes.pod_worker import PodWorker
from fakes.nodes.pressure import NodePressure
from fakes.nodes.runtime import Runtime
from fakes.nodes.services import NodeServices
from fakes.nodes.sync_loop import SyncLoop
from fakes.nodes.usage import ContainerUse
from fakes.timing import Timing
from harness.kube.port import NODE, EventType, Json, Kube

RESTART_S = 1
"""Scenario seconds that a restart of the kubelet's process takes."""


class Kubelet:
    """``run`` lasts until it is cancelled, or until ``kill``: the machine lost its power for good. ``baked`` are images
    that its disk came with."""

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
        registry: Registry | None = None,
        logs: PodLogs | None = None,
        baked: Iterable[str] = (),
        pod_address: Callable[[int], str] | None = None,
    ) -> None:
        self.machine = machine
        self._pod_address = pod_address or machine.pod_address
        self._kube = kube
        self._pods = pods
        self._timing, self._wall, self._rng = timing, wall, rng
        self._runtime, self._bugs = runtime, bugs
        self._logs = logs or PodLogs(wall)
        self._images = ImageStore(registry or Registry(), timing, rng)
        self._images.names |= set(baked)
        self._devices = DeviceManager(
            GPU_RESOURCE, timing, self._changed, self._show_all, forgetful=PlantedBug.GPUS_GIVEN_TWICE in bugs
        )
        gpus = tuple(f"GPU-{machine.name}-{n}" for n in range(machine.pool.gpus))
        self._dra = DraDriver(machine) if machine.pool.dra else None
        self.plugin = DevicePlugin(self._dra or self._devices, gpus, timing)
        """The node's device plugin, with its own faults."""
        self._workers: dict[str, PodWorker] = {}
        self._addresses = 0
        self._held: list[tuple[EventType, Json]] | None = None
        self._held_s = 0.0
        self._frozen = False
        self._tasks: asyncio.TaskGroup | None = None
        self._life: asyncio.Future[None] | None = None
        self._dead = False
        self._reboots_in_s: float | None = None
        self._agent: NodeAgent | None = None
        self._begin(rebooted=False)

    def _begin(self, *, rebooted: bool) -> None:
        client = NodeClient(self._kube)
        self._rebooted = rebooted
        self._node = NodeServices(
            machine=self.machine,
            client=client,
            timing=self._timing,
            wall=self._wall,
            rng=self._rng,
            runtime=self._runtime,
            images=self._images,
            devices=self._devices,
            events=EventRecorder(client, self._wall, "kubelet", self.machine.name),
            sync=SyncLoop(),
            logs=self._logs,
            pressure=NodePressure(),
            findings=Findings(),
            bugs=self._bugs,
        )
        self._held = None
        self._eviction = EvictionManager(self._node, self._workers.values, self._changed)

    async def run(self) -> None:
        while not self._dead:
            self._life = asyncio.ensure_future(self._live())
            try:
                await self._life
            except asyncio.CancelledError:
                current = asyncio.current_task()
                if current is not None and current.cancelling():
                    raise
            finally:
                self._off()
            off_s, self._reboots_in_s = self._reboots_in_s, None
            if self._dead or off_s is None:
                return
            await asyncio.sleep(off_s)
            self._workers.clear()
            self._devices.restarted()
            self._begin(rebooted=True)

    # Faults.

    def kill(self) -> None:
        """Power loss: sockets are reset at once, and nothing more is written."""
        self._dead = True
        self._off()
        if self._life is not None:
            self._life.cancel()

    def reboot(self, off_s: float) -> None:
        """Power loss, and back after ``off_s`` scenario seconds with a new boot id: what ran is gone, the images stay,
        and the device plugin comes up after the pods that need it were admitted, or refused for good."""
        if self._dead or self._life is None:
            return
        self._reboots_in_s = self._timing.clock_s(off_s)
        self.plugin.crash()
        self._off()
        self._life.cancel()

    def hold(self, *, frozen: bool = False) -> None:
        """Silence: the network between the kubelet and the API server is cut, or (``frozen``) its process stands still.
        Its pods go on."""
        if self._held is None:
            self._held, self._held_s, self._frozen = [], asyncio.get_running_loop().time(), frozen
            self._node.client.hold()

    def release(self) -> None:
        """Idempotent."""
        if self._held is None:
            return
        missed, self._held = self._held, None
        self._node.client.release()
        for type, pod in missed:
            self._hear(type, pod)
        self._show_all()
        if self._agent is not None:
            self._agent.resumed(asyncio.get_running_loop().time() - self._held_s if self._frozen else 0.0)

    def restart(self) -> None:
        """The kubelet's process only: containers live on. The device manager knows no more than its checkpoint until
        the plugin registers again."""
        silent = self._held is not None
        self.hold()
        self._devices.restarted()
        asyncio.get_running_loop().call_later(self._timing.clock_s(RESTART_S), self._restarted, silent)

    def _restarted(self, silent: bool) -> None:
        self.plugin.kubelet_restarted()
        if not silent:
            self.release()
        self._changed()

    def leak_devices(self, count: int) -> None:
        """As many devices are held in the kubelet's books by pods that are long gone (kubernetes#130145): allocatable
        says nothing of it, and a pod that is given one of them is refused. Again with another count, or 0."""
        self._devices.leak(count)

    def runtime_down(self) -> None:
        """The container runtime stops answering; what runs goes on."""
        if self._agent is not None:
            self._agent.runtime_down()

    def runtime_up(self) -> None:
        if self._agent is not None:
            self._agent.runtime_up()

    def pressure(self, kind: str, on: bool, evictions: int | None = None) -> None:
        """``kind``: MemoryPressure or DiskPressure; ``evictions``: how many pods it takes until it is gone."""
        self._eviction.set(kind, on, evictions)

    def find(self, condition: str, status: str) -> None:
        """An agent on the node reports it: shown with the kubelet's next status."""
        self._node.findings.say(condition, status, self._wall.stamp())
        if self._agent is not None:
            self._agent.changed()

    def oom_kill(self, namespace: str, pod: str, container: str) -> None:
        """Raises KeyError for a pod or container that this node does not run."""
        for worker in self._workers.values():
            meta = worker.pod["metadata"]
            if (meta["namespace"], meta["name"]) == (namespace, pod) and not worker.is_over:
                worker.oom_kill(container)
                return
        raise KeyError(f"no pod {namespace}/{pod} on node {self.machine.name}")

    def gpus(self) -> list[Gpu]:
        """The GPUs of this node, and what is done to them now."""
        holders = self._devices.holders()
        found: list[Gpu] = []
        for index, (id, healthy) in enumerate(self.plugin.health.items()):
            uid, container = holders.get(id, ("", ""))
            worker = self._workers.get(uid)
            if worker is None:
                found.append(Gpu(index, id, healthy))
            else:
                meta = worker.pod["metadata"]
                use = worker.gpu_use(container)
                found.append(Gpu(index, id, healthy, use, meta["namespace"], meta["name"], container))
        return found

    def container_uses(self) -> list[ContainerUse] | None:
        """What the node's containers take; None while nobody can ask: silent, frozen, or without power."""
        if self._dead or self._held is not None or self._reboots_in_s is not None:
            return None
        return [use for worker in self._workers.values() for use in worker.uses()]

    # Life.

    async def _live(self) -> None:
        self._agent = NodeAgent(self._node, self.plugin, rebooted=self._rebooted)
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            tasks.create_task(self._node.events.run())
            tasks.create_task(self._agent.run())
            await self._agent.registered.wait()
            if self._dra is not None:
                tasks.create_task(self._dra.run(self._node.client))
            self._pods.subscribe(self.machine.name, self._on_pod)

    def _off(self) -> None:
        self._node.client.cut()
        self._pods.unsubscribe(self.machine.name)
        self._eviction.stop()
        for worker in self._workers.values():
            worker.kill()

    def _changed(self) -> None:
        if self._agent is not None:
            self._agent.changed()

    def _show_all(self) -> None:
        for worker in self._workers.values():
            worker.show()

    def _on_pod(self, type: EventType, pod: Json) -> None:
        if self._held is not None:
            self._held.append((type, pod))
        else:
            self._hear(type, pod)

    def _hear(self, type: EventType, pod: Json) -> None:
        self._node.sync.call(lambda: self._handle(type, pod))

    def _handle(self, type: EventType, pod: Json) -> None:
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
        address = self._pod_address(self._addresses)
        was_here = self._rebooted and bool((pod.get("status") or {}).get("startTime"))
        worker = PodWorker(self._node, pod, address, self._admit, rebooted=was_here)
        self._workers[uid] = worker
        task = self._tasks.create_task(worker.run())
        task.add_done_callback(lambda _: self._workers.pop(uid, None))

    async def _admit(self, worker: PodWorker) -> None:
        pod = worker.pod
        if refusal := refuse_under_pressure(pod, self._node.pressure.met):
            raise refusal
        await allocate_devices(self._devices, pod, worker.views)
        node: Json = {
            "metadata": {"name": self.machine.name, "labels": node_labels(self.machine.pool, self.machine.name)}
        }
        if not matches_node(pod["spec"], node):
            node = await self._node.client.get(NODE, self.machine.name)
        others = [w.pod for w in self._workers.values() if w.admitted and not w.is_over]
        if refusal := refuse_by_fit(pod, others, node, allocatable(self.machine)):
            self._devices.release(pod["metadata"]["uid"])
            raise refusal
