"""What one more pod costs must not depend on how many there are.

Counted are the calls that Python makes, not seconds: the same world makes the same number of them on every machine.
Four times the pods may cost four times as much, and a little more for what is sorted; a controller that looks at all
pods whenever one of them changes costs sixteen times as much.
"""

from __future__ import annotations

import asyncio
import sys
from types import FrameType

from fakes.config import PoolConfig, WorldConfig
from harness.kube.port import DEPLOYMENT, NAMESPACE, PDB, SERVICE, Json, Resource
from harness.run.virtual.cluster import Cluster
from harness.run.virtual.loop import VirtualLoop

NS = "inference"
PODS_PER_NODE = 10
LABELS = {"app": "llm"}


class Calls:
    """Counts calls of Python functions and of built-in ones while it is switched on."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, frame: FrameType, event: str, arg: object) -> None:
        if event in ("call", "c_call"):
            self.count += 1

    def __enter__(self) -> Calls:
        sys.setprofile(self)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)


def objects(pods: int) -> list[tuple[Resource, Json]]:
    container = {
        "name": "vllm",
        "image": "vllm/vllm-openai:v0.32.0",
        "ports": [{"containerPort": 8000}],
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
        "readinessProbe": {"httpGet": {"path": "/health", "port": 8000}},
    }
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [container]}}
    selector = {"matchLabels": LABELS}
    meta = {"name": "llm", "namespace": NS}
    return [
        (NAMESPACE, {"metadata": {"name": NS}}),
        (SERVICE, {"metadata": meta, "spec": {"selector": LABELS, "ports": [{"port": 80, "targetPort": 8000}]}}),
        (PDB, {"metadata": meta, "spec": {"selector": selector, "maxUnavailable": "25%"}}),
        (DEPLOYMENT, {"metadata": meta, "spec": {"replicas": pods, "selector": selector, "template": template}}),
    ]


async def bring_up(pods: int) -> tuple[int, int]:
    """Calls and writes to the API until all pods are Ready."""
    nodes = pods // PODS_PER_NODE
    pool = PoolConfig("gpu", "on-demand", gpus=PODS_PER_NODE, nodes=nodes, stock=nodes, provision=False)
    cluster = Cluster(WorldConfig(seed=1, time_scale=1.0, pools=(pool,), gateway_namespace=NS))
    kube = cluster.kube()
    with Calls() as calls:
        world = asyncio.create_task(cluster.world.run())
        for resource, obj in objects(pods):
            await kube.create(resource, obj)
        while (await kube.get(DEPLOYMENT, "llm", NS)).get("status", {}).get("readyReplicas", 0) < pods:
            assert asyncio.get_running_loop().time() < 1800
            await asyncio.sleep(5.0)
    revision = cluster.world.store.revision
    world.cancel()
    await asyncio.wait([world])
    return calls.count, revision


def test_a_pod_costs_the_same_among_many() -> None:
    found = {}
    for pods in (30, 120):
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            found[pods] = runner.run(bring_up(pods))
    (few_calls, few_writes), (many_calls, many_writes) = found[30], found[120]
    assert many_calls / 120 < 1.25 * few_calls / 30, found
    assert many_writes / 120 < 1.1 * few_writes / 30, found
