"""How fast the embedded world lives in virtual time: nodes and serving pods at their real periods, nobody else.

``python benchmarks/virtual_world.py [--nodes 200] [--pods 1000] [--life-s 3600]`` brings all pods to Ready, then lets
the world live for so long: leases, node status, readiness probes, scrapes, autoscaler and controllers. It prints clock
seconds per CPU second, and what happened meanwhile, since a ratio alone could be had by doing nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import sys
import time

from fakes.config import PoolConfig, WorldConfig
from fakes.memory import collect_seldom
from fakes.vllm.container import VllmContainer
from harness.kube.port import DEPLOYMENT, HPA, LEASE, NAMESPACE, POD, Json
from harness.run.virtual.cluster import Cluster
from harness.run.virtual.loop import VirtualLoop

NS = "inference"
GPUS = 16
SETTLE_S = 1800.0


def deployment(pods: int) -> Json:
    container = {
        "name": "vllm",
        "image": "vllm/vllm-openai:v0.32.0",
        "args": ["--served-model-name", "m", "--shutdown-timeout", "85"],
        "ports": [{"name": "http", "containerPort": 8000}],
        "resources": {"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}},
        "readinessProbe": {"httpGet": {"path": "/health", "port": 8000}, "periodSeconds": 5},
    }
    labels = {"app": "llm"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": pods, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": "llm", "namespace": NS, "labels": labels}, "spec": spec}


def autoscaler(pods: int) -> Json:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llm"}
    value = {"type": "AverageValue", "averageValue": "2"}
    metric = {"type": "Pods", "pods": {"metric": {"name": "vllm_num_requests_waiting"}, "target": value}}
    spec = {"scaleTargetRef": target, "minReplicas": pods, "maxReplicas": pods + 1, "metrics": [metric]}
    return {"metadata": {"name": "llm", "namespace": NS}, "spec": spec}


class Counted:
    """Probes and scrapes, counted where they arrive."""

    probes = 0


def count_probes() -> None:
    plain = VllmContainer.probe

    def probe(self: VllmContainer, path: str) -> int | None:
        Counted.probes += 1
        return plain(self, path)

    VllmContainer.probe = probe  # type: ignore[method-assign]  # the benchmark looks on


async def live(nodes: int, pods: int, life_s: float) -> None:
    pool = PoolConfig("gpu", "on-demand", gpus=GPUS, nodes=nodes, stock=nodes, provision=False)
    cluster = Cluster(WorldConfig(seed=1, time_scale=1.0, pools=(pool,), gateway_namespace=NS))
    world, loop = asyncio.create_task(cluster.world.run()), asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    loop.turns_max = 1000 * pods
    kube = cluster.kube()
    await kube.create(NAMESPACE, {"metadata": {"name": NS}})
    await kube.create(DEPLOYMENT, deployment(pods))
    await kube.create(HPA, autoscaler(pods))
    began = time.process_time()
    while (await kube.get(DEPLOYMENT, "llm", NS)).get("status", {}).get("readyReplicas", 0) < pods:
        if loop.time() > SETTLE_S:
            sys.exit(f"not Ready after {SETTLE_S:g} s: {(await kube.get(DEPLOYMENT, 'llm', NS)).get('status')}")
        await asyncio.sleep(1.0)
    print(f"{nodes} nodes, {pods} pods Ready after {loop.time():.0f} s, {time.process_time() - began:.1f} s of CPU")
    began, start_s, turns, revision = time.process_time(), loop.time(), loop.events, cluster.world.store.revision
    probes, scrapes = Counted.probes, cluster.world.scraper.scrapes
    await asyncio.sleep(life_s)
    cpu_s, lived_s = time.process_time() - began, loop.time() - start_s
    leases, running = len((await kube.list(LEASE)).items), len((await kube.list(POD, NS)).items)
    print(
        f"{lived_s:.0f} s of life in {cpu_s:.1f} s of CPU: {lived_s / cpu_s:.0f} clock seconds per CPU second\n"
        f"{Counted.probes - probes} probes, {cluster.world.scraper.scrapes - scrapes} scrapes, "
        f"{cluster.world.store.revision - revision} writes to the API, {loop.events - turns} callbacks of the loop, "
        f"{leases} leases, {running} pods, {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB"
    )
    world.cancel()
    await asyncio.wait([world])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--life-s", type=float, default=3600.0)
    args = parser.parse_args()
    count_probes()
    collect_seldom()
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(live(args.nodes, args.pods, args.life_s))


if __name__ == "__main__":
    main()
