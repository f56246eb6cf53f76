"""Consolidation in a whole embedded cluster: pods move, nodes go, and then there is peace."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import UTC, datetime

import pytest

from fakes.config import PoolConfig, WorldConfig
from fakes.vllm.local_door import Switchboard
from fakes.world import World
from harness.kube.port import DEPLOYMENT, NAMESPACE, NODE, NODE_CLAIM, NODE_POOL, PDB, Json

pytestmark = pytest.mark.looptime

NS = "inference"
POOLS = (
    PoolConfig("small", "on-demand", gpus=2, stock=4, instance_type="gpu.2x", price_per_hour=9, nodepool="gpu"),
    PoolConfig("large", "on-demand", gpus=4, nodes=3, stock=6, instance_type="gpu.4x", price_per_hour=20,
               nodepool="gpu"),
)  # fmt: skip


def deployment(replicas: int) -> Json:
    container = {"name": "c", "image": "busybox:1", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    template = {
        "metadata": {"labels": {"app": "llm"}},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 10},
    }
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "llm"}}, "template": template}
    return {"metadata": {"name": "llm", "namespace": NS}, "spec": spec}


async def test_what_is_left_after_consolidation_is_the_cheapest_that_holds_all_and_stays() -> None:
    config = WorldConfig(seed=3, time_scale=1, pools=POOLS)
    world = World(config, datetime(2026, 11, 29, 12, tzinfo=UTC), switchboard=Switchboard())
    kube, running = world.kube("test"), asyncio.create_task(world.run())
    await kube.create(NAMESPACE, {"metadata": {"name": NS}})
    await kube.create(DEPLOYMENT, deployment(6))
    budget = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "llm"}}}
    await kube.create(PDB, {"metadata": {"name": "llm", "namespace": NS}, "spec": budget})
    await asyncio.sleep(120)
    assert (await kube.get(DEPLOYMENT, "llm", NS))["status"]["readyReplicas"] == 6
    disruption = {
        "consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "30s", "budgets": [{"nodes": "50%"}],
    }  # fmt: skip
    await kube.patch(NODE_POOL, "gpu", {"spec": {"disruption": disruption}})
    fewest = 6
    for _ in range(1200):
        await asyncio.sleep(1)
        ready = (await kube.get(DEPLOYMENT, "llm", NS))["status"].get("readyReplicas", 0)
        fewest = min(fewest, ready)
    assert fewest >= 5  # the budget of the pods held, whatever Karpenter wanted
    left = {n["metadata"]["name"] for n in (await kube.list(NODE)).items}
    assert sorted(name.partition("-")[0] for name in left) in (["large", "small"], ["small", "small", "small"])
    pool = await kube.get(NODE_POOL, "gpu")
    assert pool["status"]["resources"]["nvidia.com/gpu"] == "6"
    claims = {c["metadata"]["uid"] for c in (await kube.list(NODE_CLAIM)).items}
    await asyncio.sleep(1200)
    assert {c["metadata"]["uid"] for c in (await kube.list(NODE_CLAIM)).items} == claims  # no thrash
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
