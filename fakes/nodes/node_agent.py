"""The kubelet's side of its Node: registration, lease, status, and the stages of a boot."""

from __future__ import annotations

import asyncio
from uuid import UUID

from fakes.nodes.node_status import node_conditions, node_object, node_status
from fakes.nodes.services import NodeServices
from harness.kube.port import LEASE, NODE, AlreadyExists, ApiError, Conflict, Json, NotFound, PatchType

LEASE_NAMESPACE = "kube-node-lease"
LEASE_DURATION_S = 40
STATUS_REPORT_S = 300
"""An unchanged status is posted this seldom (nodeStatusReportFrequency); the lease is the heartbeat."""


class NodeAgent:
    """A machine that was there at the start is Ready with its GPUs from its first breath. A provisioned one registers
    NotReady and without GPUs, becomes Ready, and learns of its GPUs when its device plugin comes up."""

    def __init__(self, node: NodeServices) -> None:
        self._node = node
        self._name = node.machine.name
        self._changed = asyncio.Event()
        self._ready = not node.machine.provisioned
        node.devices.registered = self._ready
        self._since = self._ready_since = node.wall.stamp()
        self._boot_id = str(UUID(int=node.rng.getrandbits(128), version=4))
        self.registered = asyncio.Event()

    async def run(self) -> None:
        node = await self._register()
        self.registered.set()
        self._event("Starting", "Starting kubelet.")
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._keep_lease(node))
            tasks.create_task(self._keep_status())
            if not self._ready:
                tasks.create_task(self._boot())

    async def _register(self) -> Json:
        try:
            return await self._node.client.create(NODE, node_object(self._node.machine, self._status()))
        except AlreadyExists:
            return await self._node.client.get(NODE, self._name)

    async def _boot(self) -> None:
        timing, rng = self._node.timing, self._node.rng
        await asyncio.sleep(timing.draw_s(timing.durations.node_ready, rng))
        self._ready, self._ready_since = True, self._node.wall.stamp()
        self._changed.set()
        self._event("NodeReady", f"Node {self._name} status is now: NodeReady")
        await asyncio.sleep(timing.draw_s(timing.durations.device_plugin, rng))
        self._node.devices.registered = True
        self._changed.set()

    async def _keep_status(self) -> None:
        """A change is posted at once, where a real kubelet lets it wait for its next tick (10 s): the distributions of
        the boot stages are measured from outside and have that wait in them."""
        self._changed.set()
        while True:
            await self._until_due()
            patch = {"status": self._status()}
            try:
                await self._node.client.patch(NODE, self._name, patch, type=PatchType.STRATEGIC, subresource="status")
            except (NotFound, Conflict):
                continue  # somebody deleted the Node; a kubelet does not register again until it is restarted

    async def _until_due(self) -> None:
        try:
            async with asyncio.timeout(self._node.timing.clock_s(STATUS_REPORT_S)):
                await self._changed.wait()
        except TimeoutError:
            return
        self._changed.clear()

    async def _keep_lease(self, node: Json) -> None:
        owner = {"apiVersion": "v1", "kind": "Node", "name": self._name, "uid": node["metadata"]["uid"]}
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self._name, "namespace": LEASE_NAMESPACE, "ownerReferences": [owner]},
            "spec": {"holderIdentity": self._name, "leaseDurationSeconds": LEASE_DURATION_S},
        }
        while True:
            await self._renew(lease)
            await asyncio.sleep(self._node.timing.clock_s(self._node.timing.durations.lease_renew_s))

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
        conditions = node_conditions(self._ready, self._since, self._ready_since, node.wall.stamp())
        return node_status(node.machine, node.devices, node.images.names, conditions, self._boot_id)

    def _event(self, reason: str, message: str) -> None:
        # Real kubelets refer to their Node with its name for a uid.
        reference = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self._name, "uid": self._name}}
        self._node.events.event(reference, "Normal", reason, message)
