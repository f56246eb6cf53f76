"""All of a GPU cluster but its control plane: machines and their kubelets, the cloud, model servers, the gateway, the
metrics pipeline, and Karpenter's rules.

Written against the Kube port alone, so the same code surrounds the embedded control plane, in process, and a real one,
over HTTP.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Collection, Coroutine
from contextlib import suppress
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any, Protocol

from fakes.clock import WallClock
from fakes.cloud.adoption import Adoption
from fakes.cloud.cloud import Cloud, Instance
from fakes.cloud.node_controller import CloudNodeController
from fakes.cloud.notices import InterruptionNotices
from fakes.config import PlantedBug, ProcessImage, WorldConfig
from fakes.control.control import Control
from fakes.control.door import DoorKube, Doors
from fakes.control.pods import PodTrouble, meddled
from fakes.control.wiring import wire_cloud, wire_doors, wire_links, wire_nodes, wire_pods, wire_pools, wire_traffic
from fakes.controllers.informer import Informer
from fakes.controllers.karpenter.disruption import Disruption
from fakes.controllers.karpenter.lifecycle import NodeClaimLifecycle
from fakes.controllers.karpenter.marks import ClaimMarks
from fakes.controllers.karpenter.nodepool_status import NodePoolStatus
from fakes.controllers.karpenter.provisioner import Provisioner
from fakes.controllers.karpenter.termination import Termination
from fakes.controllers.leader import keep_leading
from fakes.controllers.objects import pod_ip
from fakes.gateway.choosing import Picker
from fakes.gateway.gateway import Gateway
from fakes.metrics.custom_metrics import CustomMetrics
from fakes.metrics.gateway_scraper import GatewayScraper
from fakes.metrics.gpu_scraper import GpuNode, GpuScraper
from fakes.metrics.resource_metrics import ResourceMetrics, Uses
from fakes.metrics.scraper import Scraper
from fakes.metrics.source import LocalSource
from fakes.nodes.announcer import Announcer
from fakes.nodes.assigned import AssignedPods
from fakes.nodes.images import Registry
from fakes.nodes.kubelet import Kubelet
from fakes.nodes.logs import PodLogs, Say
from fakes.nodes.loopback import Loopback
from fakes.nodes.machine import Machine
from fakes.nodes.node_agent import LEASE_NAMESPACE
from fakes.nodes.process_container import ProcessContainer
from fakes.nodes.resource_endpoint import ResourceEndpoint
from fakes.nodes.runtime import Container
from fakes.nodes.script_container import ImageRuntime
from fakes.timing import PRESETS, Timing
from fakes.vllm.container import VllmContainer
from fakes.vllm.door import MakeDoor
from fakes.vllm.http_door import HttpDoor
from fakes.vllm.ledger import LedgerFile
from fakes.vllm.local_door import Switchboard
from harness.kube.port import LEASE, POD, ApiError, Json, Kube

CLOCK_OFF_S = 300.0
"""By so much the clocks of the first nodes are ahead under a planted bug; clock seconds."""
DIES_AFTER_S = 160
"""Scenario seconds after it was switched on, the first new machine dies under a planted bug: it serves by then."""
KARPENTER = "karpenter"
KWOK_NODES = "kwok-nodes"
ENDPOINT_PICKER = "endpoint-picker"
RESOURCE_METRICS = "metrics.k8s.io"
"""What ``WorldConfig.aside`` says where a real Karpenter runs, with the provider that writes Nodes without machines;
where a real KWOK plays the kubelets of those; where a real endpoint picker chooses for the gateway, which has to
reach pods at the addresses of their status; and where a real metrics-server asks each kubelet at that of its Node."""
MakeKube = Callable[[str], Kube]
"""A Kube port for a component, whose name is the field manager of what it writes."""


class Fleet(Protocol):
    """Machines with kubelets of their own, in place of the hollow ones."""

    def names(self) -> Collection[str]:
        """Of the nodes that there are."""
        ...

    def boot(self, instance: Instance) -> None:
        """The instance has power from now on."""
        ...

    def lost(self, instance: Instance) -> None:
        """It has none any more, and never comes back."""
        ...

    def wire(self, control: Control) -> None:
        """Adds the knobs and verbs of nodes and their devices."""
        ...

    async def run(self) -> None:
        """Until cancelled; then all of them are off."""
        ...


class Surroundings:
    """``kube`` is the control plane's way in, on which each client here has a door. Needs a running event loop.

    With a ``switchboard`` model servers and scrapes need no sockets, and nothing here does. With a ``fleet`` the
    machines are real, and so are their pods.
    """

    def __init__(
        self,
        config: WorldConfig,
        wall: WallClock,
        kube: MakeKube,
        ledger: LedgerFile | None = None,
        switchboard: Switchboard | None = None,
        fleet: Fleet | None = None,
        kubelet_tls: ssl.SSLContext | None = None,
    ) -> None:
        self.config = config
        self._fleet = fleet
        self.wall = wall
        self.timing = Timing(config.time_scale, PRESETS[config.preset])
        self._past_doors = kube
        self._pod_trouble = PodTrouble()
        self._plugin_late_s: dict[str, float] = {}
        self._doors = Doors(config.seed, self.timing)
        self._ledger = ledger
        self._range = loopback = Loopback() if {ENDPOINT_PICKER, RESOURCE_METRICS} & set(config.aside) else None
        self._loopback = loopback if ENDPOINT_PICKER in config.aside else None
        self._machines_at = loopback if RESOURCE_METRICS in config.aside and fleet is None else None
        self._kubelet_tls = kubelet_tls
        self._door: MakeDoor = switchboard.door if switchboard else HttpDoor
        self._bugs = config.planted_bugs
        self._haunted = False
        self.kubelets: dict[str, Kubelet] = {}
        """The nodes' kubelets, by the node's name: their methods are the faults of nodes."""
        self.registry = Registry()
        self.logs = PodLogs(wall)
        self._tasks = asyncio.TaskGroup()
        processes = {image.image: partial(self._local_process, image) for image in config.processes}
        self._runtime = ImageRuntime(self.timing, {**processes, "vllm": self._model_server})
        self._pod_informer = Informer(self.kube("kubelet"), POD)
        self._pods = AssignedPods(self._pod_informer)
        self.cloud = Cloud(
            config.pools, self.timing, self.rng("cloud"), boot=self._boot, lost=self._lost, bugs=self._bugs
        )
        self.control = Control(self.cloud)
        source = LocalSource(switchboard) if switchboard else None
        self.scraper = Scraper(self.kube("prometheus"), self.timing, config.gateway_namespace, "", source)
        self.gpu_scraper = GpuScraper(self.timing, self._gpu_nodes)
        self.metrics = CustomMetrics(self.scraper, wall, self.gpu_scraper, self._bugs)
        self.resource_metrics = ResourceMetrics(self.kube("metrics-server"), wall, self.timing, self._container_uses)
        self.gateway = Gateway(
            self.kube("gateway"), config.gateway_namespace, config.gateway_service, self.rng("gateway"), self._bugs,
            replace(
                config.gateway,
                endpoints_lag_s=self.timing.clock_s(config.gateway.endpoints_lag_s),
                hold_s=self.timing.clock_s(config.gateway.hold_s),
            ),
            _picker_at(config.gateway.picker),
        )  # fmt: skip
        self.gateway_scraper = GatewayScraper(self.timing, self._gateway_text)
        self._wire()

    def _wire(self) -> None:
        control, pods = self.control, self._pod_trouble
        wire_cloud(control, self.cloud)
        wire_doors(control, self._doors)
        if self._fleet is not None:
            self._fleet.wire(control)
            wire_links(control, self.gateway, self._fleet.names)
        else:
            wire_nodes(control, self.kubelets, pods, self.gateway)
            wire_pools(control, self.cloud, self.kubelets, self._plugin_late_s)
            wire_pods(control, self.kubelets, pods, self.registry)
        wire_traffic(control, self.gateway, self.scraper, self.metrics, self.timing)

    async def run(self) -> None:
        """Until cancelled; a part that raises is a defect and ends them all."""
        try:
            async with self._tasks:
                for part in self._parts():
                    self._tasks.create_task(part)
                self.cloud.start()
        finally:
            self.cloud.stop()
            if self._range is not None:
                self._range.close()

    def kube(self, client: str, part: str = "") -> Kube:
        """The control plane through the client's own door. ``part`` is a controller of the process, or a node."""
        return DoorKube(self._past_doors(client), self._doors.of(f"{client}/{part}" if part else client))

    def rng(self, stream: str) -> Random:
        return Random(f"{self.config.seed}:{stream}")

    def _parts(self) -> list[Coroutine[Any, Any, None]]:
        kube, cloud = self.kube, self.cloud
        aside = self.config.aside
        karpenter = self._karpenter() if KARPENTER not in aside else []
        adopts = KARPENTER in aside and KWOK_NODES not in aside
        return [
            *karpenter,
            *([Adoption(kube("kubelet", "adoption"), cloud, self.timing).run()] if adopts else []),
            *([InterruptionNotices(kube("interruptions"), cloud).run()] if adopts else []),
            CloudNodeController(kube("cloud-controller-manager"), cloud).run(),
            self._pod_informer.run(),
            *self._real_parts(),
            self.scraper.run(),
            self.gpu_scraper.run(),
            self.gateway_scraper.run(),
            self.gateway.run(),
        ]

    def _karpenter(self) -> list[Coroutine[Any, Any, None]]:
        kube, wall, timing, bugs = self.kube, self.wall, self.timing, self._bugs
        provisioner = Provisioner(kube("karpenter"), wall, timing, self.cloud, bugs)
        return [
            provisioner.run(),
            ClaimMarks(kube("karpenter"), wall, timing, provisioner.view).run(),
            NodePoolStatus(kube("karpenter"), wall, provisioner.view).run(),
            Disruption(kube("karpenter"), wall, timing, provisioner, bugs).run(),
            NodeClaimLifecycle(kube("karpenter"), wall, timing, self.cloud).run(),
            Termination(kube("karpenter"), wall, timing, self.cloud, bugs).run(),
            keep_leading(kube("karpenter"), wall, timing, "karpenter-leader-election"),
        ]

    def _real_parts(self) -> list[Coroutine[Any, Any, None]]:
        if self._fleet is None:
            return []
        return [self._fleet.run(), Announcer(self.kube("kubelet"), self._pod_informer).run()]

    def _boot(self, instance: Instance) -> None:
        if self._fleet is not None:
            self._fleet.boot(instance)
            return
        machine, served = self._listening(instance.machine)
        kubelet = Kubelet(
            machine,
            self.kube("kubelet", instance.node),
            self._pods,
            timing=self.timing,
            wall=self._clock_of(instance),
            rng=self.rng(f"node-{instance.node}"),
            runtime=self._runtime,
            bugs=self._bugs,
            registry=self.registry,
            logs=self.logs,
            pod_address=partial(self._loopback.address, instance.machine.index) if self._loopback else None,
        )
        if instance.machine.provisioned:
            kubelet.plugin.late_s = self._plugin_late_s.get(instance.pool.name, 0.0)
        self.kubelets[instance.node] = kubelet
        self._tasks.create_task(self._until_dead(kubelet, served))
        if PlantedBug.DEAD_NODE_KEEPS_ITS_LEASE in self._bugs and instance.machine.provisioned and not self._haunted:
            self._haunted = True
            self._tasks.create_task(self._die_unnoticed(instance.node, kubelet))

    def _listening(self, machine: Machine) -> tuple[Machine, socket.socket | None]:
        """As its Node will say where its kubelet can be asked, where somebody asks."""
        if self._machines_at is None or self._kubelet_tls is None:
            return machine, None
        bound = socket.create_server((self._machines_at.of_machine(machine.index), 0))
        return replace(machine, listens=bound.getsockname()), bound

    async def _until_dead(self, kubelet: Kubelet, served: socket.socket | None) -> None:
        """What it serves ends with its machine."""
        if served is None or self._kubelet_tls is None:
            await kubelet.run()
            return
        serving = asyncio.ensure_future(
            ResourceEndpoint(kubelet.container_uses, self.wall).serve(served, self._kubelet_tls)
        )
        try:
            await kubelet.run()
        finally:
            serving.cancel()
            with suppress(asyncio.CancelledError):
                await serving

    def _clock_of(self, instance: Instance) -> WallClock:
        if PlantedBug.CLOCK_OF_A_NODE_IS_OFF in self._bugs and not instance.machine.provisioned:
            return self.wall.ahead(CLOCK_OFF_S)
        return self.wall

    async def _die_unnoticed(self, node: str, kubelet: Kubelet) -> None:
        """A planted bug: the machine is dead, nobody tells the cloud, and something renews its lease as before."""
        await asyncio.sleep(self.timing.clock_s(DIES_AFTER_S))
        kubelet.kill()
        kube, renew_s = self.kube("kubelet", f"{node}-ghost"), self.timing.clock_s(self.timing.durations.lease_renew_s)
        while True:
            with suppress(ApiError):
                await kube.patch(LEASE, node, {"spec": {"renewTime": self.wall.stamp_micro()}}, LEASE_NAMESPACE)
            await asyncio.sleep(renew_s)

    def _lost(self, instance: Instance) -> None:
        if self._fleet is not None:
            self._fleet.lost(instance)
        elif kubelet := self.kubelets.pop(instance.node, None):
            kubelet.kill()

    def _container_uses(self) -> dict[str, Uses]:
        return {name: kubelet.container_uses for name, kubelet in self.kubelets.items()}

    def _gateway_text(self) -> str:
        return self.gateway.metrics.text(self.gateway.router, len(self.gateway.forwarder.queue))

    def _gpu_nodes(self) -> dict[str, GpuNode]:
        return {
            name: GpuNode(kubelet.machine.pool.gpu_product, kubelet.gpus)
            for name, kubelet in self.kubelets.items()
            if kubelet.machine.pool.gpus
        }

    async def _model_server(self, pod: Json, container: Json, say: Say) -> Container:
        server = VllmContainer(
            pod,
            container,
            timing=self._pod_trouble.slowed(self.timing),
            rng=self.rng(f"pod-{pod['metadata']['name']}"),
            bugs=self._bugs,
            wall=self.wall,
            note=self._ledger.of(pod["metadata"]["name"]) if self._ledger else None,
            door=self._door,
            say=say,
            at=(pod_ip(pod), _port_of(container)) if self._loopback else None,
        )
        await server.start()
        return meddled(pod, server, self._pod_trouble)

    async def _local_process(self, image: ProcessImage, pod: Json, container: Json, say: Say) -> Container:
        process = ProcessContainer(pod, container, image, say)
        await process.start()
        return meddled(pod, process, self._pod_trouble)


def _picker_at(address: str) -> Picker | None:
    if not address:
        return None
    from fakes.gateway.picker import EndpointPicker

    return EndpointPicker(address)


def _port_of(container: Json) -> int:
    return next((int(port["containerPort"]) for port in container.get("ports") or ()), 8000)
