"""A Node that Karpenter's kwok provider writes gets a kubelet; when it is deleted, its machine shuts down."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from random import Random

import pytest

from fakes.clock import WallClock
from fakes.cloud.adoption import SHUTDOWN_S, Adoption
from fakes.cloud.cloud import Cloud, Instance
from fakes.config import PoolConfig
from fakes.kube import LocalKube, Store
from fakes.nodes.labels import instance_of
from fakes.timing import Timing
from harness.kube.port import NODE, Json

pytestmark = pytest.mark.looptime
LABELS = {
    "karpenter.sh/nodepool": "gpu",
    "karpenter.sh/capacity-type": "spot",
    "node.kubernetes.io/instance-type": "p5.48xlarge",
    "topology.kubernetes.io/zone": "zone-b",
    "eks-node-viewer/instance-price": "22.020000",
}


def node(name: str, labels: dict[str, str], annotations: dict[str, str]) -> Json:
    return {
        "metadata": {"name": name, "labels": labels, "annotations": annotations},
        "spec": {"providerID": f"kwok://{name}"},
        "status": {"allocatable": {"cpu": "191900m", "memory": "2147373056Ki", "nvidia.com/gpu": "8"}},
    }


async def test_a_node_written_for_kwok_is_given_a_machine_like_it() -> None:
    kube = LocalKube(Store(WallClock(datetime(2026, 11, 29, tzinfo=UTC)), Random(1)), "test")
    booted: list[Instance] = []
    lost: list[str] = []
    own = PoolConfig("own", "on-demand", gpus=2)
    cloud = Cloud((own,), Timing(), Random(1), boot=booted.append, lost=lambda i: lost.append(i.node))
    adopting = asyncio.ensure_future(Adoption(kube, cloud, Timing()).run())
    kwok = {"kwok.x-k8s.io/node": "fake"}
    await kube.create(NODE, node("kwok-gpu-1", LABELS, kwok))
    await kube.create(NODE, node("somebody-elses", LABELS, {}))
    await kube.create(NODE, node("kwok-gpu-2", LABELS | {"gpu-harness.dev/pool": "own"}, kwok))
    await asyncio.sleep(0.1)
    first, second = booted
    assert (first.node, first.machine.provider_id) == ("kwok-gpu-1", "kwok://kwok-gpu-1")
    assert instance_of(first.machine.provider_id) == first.id
    pool = first.pool
    assert (pool.gpus, pool.cpu, pool.memory_gib, pool.instance_type) == (8, 192, 2048, "p5.48xlarge")
    assert (pool.capacity_type, pool.zone, pool.price_per_hour, pool.node_pool) == ("spot", "zone-b", 22.02, "gpu")
    assert second.pool is own
    await kube.delete(NODE, "kwok-gpu-1")
    await asyncio.sleep(SHUTDOWN_S - 0.1)
    assert lost == []  # its kubelet still has to say how its pods ended
    await asyncio.sleep(0.2)
    assert lost == ["kwok-gpu-1"]
    adopting.cancel()
