"""The kubelet's side of its Node: registration, lease, status, and the stages of a boot."""

from __future__ import annotations

import asyncio
import math
from contextlib import suppress
from uuid import UUID

from fakes.config import PlantedBug
from fakes.nodes.device_plugin import DevicePlugin
from fakes.nodes.node_status import NETWORK_NOT_READY, node_conditions, node_object, node_status
from fakes.nodes.services import NodeServices
from harness.kube.port import LEASE, NODE, AlreadyExists, ApiError, Conflict, Json, NotFound, PatchType

LEASE_NAMESPACE = "kube-node-lease"
LEASE_DURATION_S = 40
STATUS_TICK_S = 10
"""What changes in the Node's status is seen at the next of these ticks (nodeStatusUpdateFrequency)."""
STATUS_REPORT_S = 300
"""An unchanged status is posted this seldom (nodeStatusReportFrequency); the lease is the heartbeat."""
LIED_GPUS = 2
"""What a node claims to have beyond what is there, under the planted bug."""
PLUGIN_LIFE_S = 100
"""Scenario seconds until the device plugin of a new node dies, under another."""
RUNTIME_DOWN_S = 30
"""A container runtime that has not answered for this long makes the node NotReady."""
PLEG_S = 180
"""A kubelet that stood still this long finds itself unhealthy when it goes on."""


class NodeAgent:
    """A machine that was there at the start is Ready with its GPUs from its first breath. A provisioned one registers
    NotReady and without GPUs, becomes Ready, and learns of its GPUs when its device plugin comes up. So does one that
    ``rebooted``, but for a Node that never stopped saying Ready."""

    def __init__(self, node: NodeServices, plugin: DevicePlugin, *, rebooted: bool = False) -> None:
        self._node = node
        self._plugin = plugin
        self._rebooted = rebooted
        self._name = node.machine.name
        self._loop = asyncio.get_running_loop()
        self._began_s = self._loop.time()
        self._due = asyncio.Event()
        self._tick: asyncio.TimerHandle | None = None
        now = node.wall.stamp()
        boots = node.machine.provisioned and not rebooted
        self._not_ready = NETWORK_NOT_READY if boots else ""
        self._since = dict.fromkeys(("MemoryPressure", "DiskPressure", "PIDPressure", "Ready"), now)
        self._said: dict[str, bool] = {}
        self._runtime_is_down = False
        self._boot_id = str(UUID(int=node.rng.getrandbits(128), version=4))
        if not node.machine.provisioned and not rebooted and plugin.late_s == 0:
            plugin.start()
        self.registered = asyncio.Event()

    async def run(self) -> None:
        node = await self._register()
        self.registered.set()
        self._event("Normal", "Starting", "Starting kubelet.")
        if self._rebooted:
            self._event("Warning", "Rebooted", f"Node {self._name} has been rebooted, boot id: {self._boot_id}")
            self._due.set()
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._keep_lease(node))
                tasks.create_task(self._keep_status())
                tasks.create_task(self._boot())
        finally:
            self._cancel_tick()

    def changed(self) -> None:
        """The status would look different now: it is posted at the next tick."""
        tick_s = self._node.timing.clock_s(STATUS_TICK_S)
        ticks = math.floor((self._loop.time() - self._began_s) / tick_s + 1e-9) + 1
        due_s = self._began_s + ticks * tick_s
        if self._tick is None or self._tick.when() > due_s:
            self._cancel_tick()
            self._tick = self._loop.call_at(due_s, self._ticked)

    def runtime_down(self) -> None:
        self._loop.call_later(self._node.timing.clock_s(RUNTIME_DOWN_S), self._runtime_still_down)
        self._runtime_is_down = True

    def runtime_up(self) -> None:
        self._runtime_is_down = False
        if self._not_ready == "container runtime is down":
            self._set_not_ready("")
            self.changed()

    def _runtime_still_down(self) -> None:
        if self._runtime_is_down:
            self._set_not_ready("container runtime is down")
            self.changed()

    def resumed(self, still_s: float) -> None:
        """The kubelet can write again, after its process stood still for ``still_s`` clock seconds; what it last wrote
        may have been overwritten since."""
        scenario_s = still_s * self._node.timing.time_scale
        if scenario_s >= PLEG_S:
            minutes, seconds = divmod(int(scenario_s), 60)
            self._set_not_ready(
                f"PLEG is not healthy: pleg was last seen active {minutes}m{seconds}s ago; threshold is 3m0s"
            )
            self._due.set()
            self._loop.call_later(self._node.timing.clock_s(1), self._pleg_relisted)
        self.changed()

    def _pleg_relisted(self) -> None:
        if self._not_ready.startswith("PLEG"):
            self._set_not_ready("")
            self.changed()

    async def _register(self) -> Json:
        try:
            return await self._node.client.create(NODE, node_object(self._node.machine, self._status()))
        except AlreadyExists:
            return await self._node.client.get(NODE, self._name)

    async def _boot(self) -> None:
        timing, rng, plugin, bugs = self._node.timing, self._node.rng, self._plugin, self._node.bugs
        if self._not_ready and PlantedBug.NODE_NEVER_READY in bugs:
            return
        if self._not_ready:
            await asyncio.sleep(timing.draw_s(timing.durations.node_ready, rng))
            self._set_not_ready("")
            self._due.set()  # a kubelet that has just started looks often, until it is Ready
        if self._node.machine.provisioned and PlantedBug.DEVICE_PLUGIN_NEVER_COMES in bugs:
            return
        if not plugin.running and plugin.late_s != math.inf:
            first = 0.0 if not (self._node.machine.provisioned or self._rebooted) else timing.draw_s(
                timing.durations.device_plugin, rng
            )  # fmt: skip
            await asyncio.sleep(first + timing.clock_s(plugin.late_s))
            plugin.start()
        if self._node.machine.provisioned and PlantedBug.DEVICE_PLUGIN_DIES in bugs:
            await asyncio.sleep(timing.clock_s(PLUGIN_LIFE_S))
            plugin.crash()

    def _set_not_ready(self, why: str) -> None:
        if bool(why) is not bool(self._not_ready):
            self._since["Ready"] = self._node.wall.stamp()
        self._not_ready = why

    async def _keep_status(self) -> None:
        self._due.set()
        report_s = self._node.timing.clock_s(STATUS_REPORT_S)
        while True:
            await self._due.wait()
            self._due.clear()
            self._cancel_tick()
            patch = {"status": self._status()}
            with suppress(NotFound, Conflict):  # it was deleted; a kubelet registers again only when it is restarted
                await self._node.client.patch(NODE, self._name, patch, type=PatchType.STRATEGIC, subresource="status")
            if self._tick is None:
                self._tick = self._loop.call_later(report_s, self._ticked)

    def _ticked(self) -> None:
        self._tick = None
        self._due.set()

    def _cancel_tick(self) -> None:
        if self._tick is not None:
            self._tick.cancel()
            self._tick = None

    async def _keep_lease(self, node: Json) -> None:
        owner = {"apiVersion": "v1", "kind": "Node", "name": self._name, "uid": node["metadata"]["uid"]}
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self._name, "namespace": LEASE_NAMESPACE, "ownerReferences": [owner]},
            "spec": {"holderIdentity": self._name, "leaseDurationSeconds": LEASE_DURATION_S},
        }
        renew_s = self._node.timing.clock_s(self._node.timing.durations.lease_renew_s)
        while True:
            asked_s = self._loop.time()
            await self._renew(lease)
            if self._loop.time() - asked_s > 2 * renew_s:
                self.changed()  # the node may have been given up meanwhile
            await asyncio.sleep(renew_s)

    async def _renew(self, lease: Json) -> None:
        client, now = self._node.client, {"renewTime": self._node.wall.stamp_micro()}
        try:
            await client.patch(LEASE, self._name, {"spec": now}, LEASE_NAMESPACE)
        except NotFound:
            try:
                await client.create(LEASE, {**lease, "spec": {**lease["spec"], **now}}, LEASE_NAMESPACE)
            except ApiError:
                return  # the next renewal tries again

    def _status(self) -> Json:
        node = self._node
        now = {kind: kind in node.pressure.met for kind in self._since} | {"Ready": not self._not_ready}
        for kind, on in now.items():
            if kind in self._said and self._said[kind] is not on and kind != "Ready":
                self._since[kind] = node.wall.stamp()
            if self._said.get(kind, kind == "Ready" and on) is not on:
                self._event(
                    "Normal", _transition(kind, on), f"Node {self._name} status is now: {_transition(kind, on)}"
                )
        self._said = now
        stamp = node.wall.stamp()
        conditions = node_conditions(node.pressure.met, self._not_ready, self._since, stamp)
        conditions += node.findings.conditions(stamp)
        gpus = node.devices.in_status()
        if gpus is None and node.machine.named:
            # Whoever made the Node promised GPUs in it; a kubelet sets what no plugin has told it of to 0
            # (kubernetes v1.37, pkg/kubelet/kubelet_node_status.go, reconcileExtendedResource).
            gpus = (0, 0)
        if gpus is not None and PlantedBug.ALLOCATABLE_LIES in node.bugs:
            gpus = (gpus[0] + LIED_GPUS, gpus[1] + LIED_GPUS)
        return node_status(node.machine, gpus, node.images.names, conditions, self._boot_id)

    def _event(self, type: str, reason: str, message: str) -> None:
        # Real kubelets refer to their Node with its name for a uid.
        reference = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self._name, "uid": self._name}}
        self._node.events.event(reference, type, reason, message)


def _transition(kind: str, on: bool) -> str:
    """The reason of the event of a condition that changed."""
    return {
        ("Ready", True): "NodeReady",
        ("Ready", False): "NodeNotReady",
        ("MemoryPressure", True): "NodeHasInsufficientMemory",
        ("MemoryPressure", False): "NodeHasSufficientMemory",
        ("DiskPressure", True): "NodeHasDiskPressure",
        ("DiskPressure", False): "NodeHasNoDiskPressure",
        ("PIDPressure", True): "NodeHasInsufficientPID",
        ("PIDPressure", False): "NodeHasSufficientPID",
    }[kind, on]
