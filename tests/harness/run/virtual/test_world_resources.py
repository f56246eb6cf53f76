"""A whole world scales on CPU: kubelets tell, ``metrics.k8s.io`` serves, the autoscaler reads."""

from __future__ import annotations

import asyncio
from typing import Any

from fakes.config import PoolConfig, WorldConfig
from harness.kube.port import DEPLOYMENT, HPA, NAMESPACE, Json
from harness.run.virtual.cluster import Cluster
from harness.run.virtual.loop import VirtualLoop

NS = "inference"
LABELS = {"app": "web"}


def web(cpu_milli: int) -> Json:
    container = {"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": {"cpu": "500m"}}}
    meta = {"labels": LABELS, "annotations": {"gpu-harness.dev/cpu-milli": str(cpu_milli)}}
    template = {"metadata": meta, "spec": {"containers": [container]}}
    spec = {"replicas": 2, "selector": {"matchLabels": LABELS}, "template": template}
    return {"metadata": {"name": "web", "namespace": NS}, "spec": spec}


def autoscaler() -> Json:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}
    spec = {"scaleTargetRef": target, "maxReplicas": 6, "metrics": [{"type": "Resource", "resource": cpu}]}
    return {"metadata": {"name": "web", "namespace": NS}, "spec": spec}


async def lived(life_s: float) -> dict[str, Any]:
    pool = PoolConfig("a", "on-demand", gpus=0, nodes=2, stock=2, provision=False)
    cluster = Cluster(WorldConfig(seed=1, time_scale=1.0, pools=(pool,), gateway_namespace=NS))
    kube, world = cluster.kube(), asyncio.create_task(cluster.world.run())
    await kube.create(NAMESPACE, {"metadata": {"name": NS}})
    await kube.create(DEPLOYMENT, web(450))
    await kube.create(HPA, autoscaler())
    metrics = cluster.world.surroundings.resource_metrics
    await asyncio.sleep(30.0)
    early = await metrics.handle(f"namespaces/{NS}/pods", {"labelSelector": "app=web"})
    await asyncio.sleep(life_s)
    found = {
        "early": early[1]["items"],
        "pods": (await metrics.handle(f"namespaces/{NS}/pods", {}))[1]["items"],
        "nodes": (await metrics.handle("nodes", {}))[1]["items"],
        "hpa": (await kube.get(HPA, "web", NS))["status"],
        "replicas": (await kube.get(DEPLOYMENT, "web", NS))["spec"]["replicas"],
        "missing": await metrics.handle(f"namespaces/{NS}/pods/none", {}),
    }
    cluster.world.surroundings.kubelets["a-1"].hold()
    found["silent"] = [n["metadata"]["name"] for n in (await metrics.handle("nodes", {}))[1]["items"]]
    world.cancel()
    await asyncio.wait([world])
    return found


def test_more_replicas_for_more_cpu() -> None:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        found = runner.run(lived(900.0))
    assert found["early"] == [], "two scrapes have to have seen a container"
    assert found["replicas"] == 6, "90 % against 60, again and again, as far as it may"
    [metric] = found["hpa"]["currentMetrics"]
    assert metric["resource"]["current"] == {"averageUtilization": 90, "averageValue": "450m"}
    assert len(found["pods"]) == 6
    [container] = found["pods"][0]["containers"]
    assert (container["name"], container["usage"]) == ("main", {"cpu": "450000000n", "memory": "65536Ki"})
    assert sum(int(n["usage"]["cpu"].rstrip("n")) for n in found["nodes"]) == 6 * 450_000_000
    assert found["missing"][0] == 404
    assert found["missing"][1]["message"] == f'podmetrics.metrics.k8s.io "{NS}/none" not found'
    assert found["silent"] == ["a-2"]
