"""Machines for Nodes that another's provisioner writes: Karpenter's kwok provider creates a Node and nothing behind it.

Each Node that carries the kwok annotation gets a machine and with it a hollow kubelet, which registers as its own; when
the Node is deleted, the machine shuts down. What the machine is like stands in the Node's labels and in what it
says it has (sigs.k8s.io/karpenter v1.15.0, kwok/cloudprovider: ``toNode``).
"""

from __future__ import annotations

import asyncio

from fakes.cloud.cloud import Cloud, InstanceState
from fakes.config import PoolConfig
from fakes.controllers.informer import Informer
from fakes.controllers.quantity import parse_quantity
from fakes.nodes.labels import CAPACITY_TYPE, GPU_RESOURCE, NODEPOOL, OFFERING, instance_id
from fakes.timing import Timing
from harness.kube.port import NODE, EventType, Json, Kube

ANNOTATION = ("kwok.x-k8s.io/node", "fake")
ZONE = "topology.kubernetes.io/zone"
UNKNOWN_GPU = "unknown"
PRICE = "eks-node-viewer/instance-price"
SHUTDOWN_S = 3.0
"""Scenario seconds until the machine of a deleted Node is off. An instance that its cloud is told to terminate shuts
down in order, which takes longer; the kwok provider deletes the Node in the moment that the last pod's containers have
ended, and a kubelet without time would never delete that pod: its object stays until the garbage collector comes."""
_GIB = 1024**3


class Adoption:
    def __init__(self, kube: Kube, cloud: Cloud, timing: Timing) -> None:
        self._cloud = cloud
        self._shutdown_s = timing.clock_s(SHUTDOWN_S)
        self._shutting_down: dict[str, asyncio.TimerHandle] = {}
        self._nodes = Informer(kube, NODE)
        self._nodes.on_change(self._changed)

    async def run(self) -> None:
        try:
            await self._nodes.run()
        finally:
            for timer in self._shutting_down.values():
                timer.cancel()

    def _changed(self, type: EventType, node: Json, old: Json | None) -> None:
        meta = node["metadata"]
        if (meta.get("annotations") or {}).get(ANNOTATION[0]) != ANNOTATION[1]:
            return
        instance = self._cloud.instances.get(instance_id(meta["name"]))
        if type is EventType.DELETED:
            if instance is not None and instance.state is not InstanceState.TERMINATED:
                loop = asyncio.get_running_loop()
                self._shutting_down[instance.id] = loop.call_later(self._shutdown_s, self._cloud.terminate, instance.id)
        elif instance is None:
            self._cloud.adopt(meta["name"], self._pool(node), (node.get("spec") or {}).get("providerID", ""))

    def _pool(self, node: Json) -> PoolConfig:
        """One of the cloud's own where the node says so; else one made up from what the node says of itself."""
        labels = node["metadata"].get("labels") or {}
        if labels.get(OFFERING) in self._cloud.pools:
            return self._cloud.pools[labels[OFFERING]]
        has = (node.get("status") or {}).get("allocatable") or {}
        nodepool, type = labels.get(NODEPOOL, "kwok"), labels.get("node.kubernetes.io/instance-type", "unknown")
        capacity_type, zone = (
            labels.get(CAPACITY_TYPE, "on-demand"),
            labels.get("topology.kubernetes.io/zone", "zone-a"),
        )
        return PoolConfig(
            name=f"{nodepool}/{type}/{capacity_type}/{zone}",
            capacity_type=capacity_type,
            gpus=int(parse_quantity(has.get(GPU_RESOURCE, "0"))),
            stock=0,
            cpu=max(1, round(parse_quantity(has.get("cpu", "1")))),
            memory_gib=max(1, round(parse_quantity(has.get("memory", "1Gi")) / _GIB)),
            instance_type=type,
            gpu_product=labels.get("nvidia.com/gpu.product", UNKNOWN_GPU),
            zone=zone,
            price_per_hour=float(labels.get(PRICE, 0)),
            nodepool=nodepool,
        )
