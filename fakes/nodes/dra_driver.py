"""The DRA driver of a node: its GPUs as devices of a ResourceSlice, in place of the device plugin's resource.

It stands where the kubelet's device manager stands for the device plugin, so that the faults of one are those of the
other: a device that is unhealthy gets a taint in the slice (NoExecute: the device taint eviction controller then takes
off the pods that hold it), a driver that went away leaves the slice as it was. Names as of NVIDIA's k8s-dra-driver-gpu;
``numa`` splits a node's GPUs in two halves, as the two sockets of a usual eight-GPU machine do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from fakes.nodes.client import NodeClient
from fakes.nodes.devices import Plugin
from fakes.nodes.machine import Machine
from harness.kube.port import NODE, RESOURCE_SLICE, AlreadyExists, Json, NotFound

DRIVER = "gpu.nvidia.com"
TAINT = "gpu.nvidia.com/unhealthy"


class DraDriver:
    """``run`` writes the slice whenever the plugin has listed something new, and once for each life of the kubelet."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._plugin: Plugin | None = None
        self._devices: dict[str, bool] = {}
        self._generation = 0
        self._due = asyncio.Event()

    # What the device plugin calls.

    def register(self, plugin: Plugin, devices: Mapping[str, bool]) -> None:
        self._plugin = plugin
        self.list(plugin, devices)

    def list(self, plugin: Plugin, devices: Mapping[str, bool]) -> None:
        if plugin is self._plugin:
            self._devices = dict(devices)
            self._due.set()

    def disconnect(self, plugin: Plugin) -> None:
        """A kubelet keeps the slices of a driver that went away for a while; nothing changes."""

    async def run(self, client: NodeClient) -> None:
        while True:
            await self._due.wait()
            self._due.clear()
            self._generation += 1
            await self._write(client)

    async def _write(self, client: NodeClient) -> None:
        name = f"{self._machine.name}-{DRIVER}"
        with suppress(NotFound):  # the Node was deleted, and its slice goes with it
            node = await client.get(NODE, self._machine.name)
            owner = {"apiVersion": "v1", "kind": "Node", "name": self._machine.name, "uid": node["metadata"]["uid"]}
            wanted: Json = {
                "apiVersion": RESOURCE_SLICE.api_version,
                "kind": RESOURCE_SLICE.kind,
                "metadata": {"name": name, "ownerReferences": [{**owner, "controller": True}]},
                "spec": self._spec(),
            }
            try:
                await client.create(RESOURCE_SLICE, wanted)
            except AlreadyExists:
                await client.patch(RESOURCE_SLICE, name, {"spec": wanted["spec"]})

    def _spec(self) -> Json:
        pool = {"name": self._machine.name, "generation": self._generation, "resourceSliceCount": 1}
        devices = [self._device(index, ok) for index, ok in enumerate(self._devices.values())]
        return {"driver": DRIVER, "nodeName": self._machine.name, "pool": pool, "devices": devices}

    def _device(self, index: int, healthy: bool) -> Json:
        half = max(1, (len(self._devices) + 1) // 2)
        product = self._machine.pool.gpu_product
        attributes = {"productName": {"string": product}, "index": {"int": index}, "numa": {"int": index // half}}
        taints = [] if healthy else [{"key": TAINT, "value": "xid-79", "effect": "NoExecute"}]
        return {"name": f"gpu-{index}", "attributes": attributes, "taints": taints}
