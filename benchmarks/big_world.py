"""1,000 nodes and 10,000 pods Running on the embedded cluster: the CPU seconds and the memory that takes.

``python benchmarks/big_world.py [--nodes 1000] [--pods 10000] [--deployments 10] [--limit-s 600]``

Brings up Deployments of plain pods, each with a Service and a disruption budget, with all controllers, kubelets, leases
and scrapes at their real periods. It runs in virtual time, so that the modelled start of a pod (pull, create) is not
waited for and what is left is the CPU that the work takes. How fast the machine is at the moment is printed beside it.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import sys
import time

from fakes.config import PoolConfig, WorldConfig
from fakes.memory import collect_seldom
from harness.kube.port import DEPLOYMENT, NAMESPACE, PDB, POD, SERVICE, Json, Resource
from harness.run.virtual.cluster import Cluster
from harness.run.virtual.loop import VirtualLoop

NS = "inference"
SETTLE_S = 1800.0


def workload(name: str, pods: int) -> list[tuple[Resource, Json]]:
    labels = {"app": name}
    container = {
        "name": "main",
        "image": "registry.k8s.io/pause:3.10",
        "ports": [{"containerPort": 8000}],
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
    }
    meta, selector = {"name": name, "namespace": NS, "labels": labels}, {"matchLabels": labels}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return [
        (SERVICE, {"metadata": meta, "spec": {"selector": labels, "ports": [{"port": 80, "targetPort": 8000}]}}),
        (PDB, {"metadata": meta, "spec": {"selector": selector, "maxUnavailable": "10%"}}),
        (DEPLOYMENT, {"metadata": meta, "spec": {"replicas": pods, "selector": selector, "template": template}}),
    ]


def yardstick() -> float:
    """CPU seconds of a fixed piece of Python: how fast this machine is at the moment."""
    began, total = time.process_time(), 0
    for i in range(3_000_000):
        total += len({"a": i})
    return time.process_time() - began


async def bring_up(nodes: int, pods: int, deployments: int, limit_s: float) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    loop.turns_max = 1000 * pods
    pool = PoolConfig("gpu", "on-demand", gpus=-(-pods // nodes), nodes=nodes, stock=nodes, provision=False)
    cluster = Cluster(WorldConfig(seed=1, time_scale=1.0, pools=(pool,), gateway_namespace=NS))
    kube, world = cluster.kube(), asyncio.create_task(cluster.world.run())
    began = time.process_time()
    await kube.create(NAMESPACE, {"metadata": {"name": NS}})
    for n in range(deployments):
        for kind, obj in workload(f"work-{n}", pods // deployments):
            await kube.create(kind, obj)
    while True:
        running = [p for p in (await kube.list(POD, NS)).items if p["status"].get("phase") == "Running"]
        cpu_s = time.process_time() - began
        if len(running) == pods // deployments * deployments:
            break
        if cpu_s > limit_s or loop.time() > SETTLE_S:
            sys.exit(f"{len(running)} of {pods} pods Running after {cpu_s:.0f} s of CPU, {loop.time():.0f} s of life")
        await asyncio.sleep(1.0)
    memory_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{nodes} nodes, {len(running)} pods Running: {cpu_s:.1f} s of CPU, {memory_mib:.0f} MiB at most, "
        f"after {loop.time():.0f} s of the world's life\n"
        f"{cluster.world.store.revision} writes to the API ({1e6 * cpu_s / cluster.world.store.revision:.0f} us of CPU "
        f"each, everything included), {loop.events} callbacks of the loop"
    )
    world.cancel()
    await asyncio.wait([world])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--deployments", type=int, default=10)
    parser.add_argument("--limit-s", type=float, default=600.0, help="give up after so many seconds of CPU")
    args = parser.parse_args()
    collect_seldom()
    before = yardstick()
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(bring_up(args.nodes, args.pods, args.deployments, args.limit_s))
    print(f"yardstick (3,000,000 small dicts): {before:.2f} s of CPU before, {yardstick():.2f} s after")


if __name__ == "__main__":
    main()
