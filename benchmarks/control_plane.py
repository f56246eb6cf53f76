"""How large a cluster around the real control plane grows, and how fast, on this machine.

``python benchmarks/control_plane.py [--nodes 200] [--pods 1000] [--time-scale 5] [--bin-dir DIR]`` starts the target
``controlplane`` with so many hollow nodes, creates one Deployment, and waits until every pod is Running. It prints
clock seconds of each stage, the CPU seconds of all processes together, and what each holds in memory at the end. The
time scale shortens what hollow kubelets wait for (image, start), not what the control plane works.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from fakes.config import PoolConfig, WorldConfig
from fakes.controllers.informer import Informer
from harness.kube.http import HttpKube
from harness.kube.port import DEPLOYMENT, NAMESPACE, NODE, POD, EventType, Json, Kube
from harness.stack.catalogue import CONTROL_PLANE
from harness.stack.find import find_binaries
from harness.targets.controlplane.target import ControlPlaneTarget
from harness.targets.wanted import Places, Wanted

NS = "inference"
GPUS = 8
GIVE_UP_S = 300.0
LONGEST_S = 30.0
"""Clock seconds from the first node to the last Running pod: what this must stay under for 200 nodes and 1,000 pods."""


def deployment(pods: int) -> Json:
    container = {
        "name": "trainer",
        "image": "registry.example/trainer:1",
        "resources": {"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}},
    }
    labels = {"app": "many"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": pods, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": "many", "namespace": NS, "labels": labels}, "spec": spec}


def is_ready(node: Json) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "True" for c in node.get("status", {}).get("conditions", ()))


def is_bound(pod: Json) -> bool:
    return bool(pod["spec"].get("nodeName"))


def is_running(pod: Json) -> bool:
    return bool(pod.get("status", {}).get("phase") == "Running")


async def until(kube: Kube, count: int, *facts: Callable[[Json], bool]) -> list[float]:
    """When each of ``facts`` first held of ``count`` pods, on the clock of the loop."""
    pods = Informer(kube, POD)
    watching = asyncio.create_task(pods.run())
    found: list[float | None] = [None] * len(facts)
    held: list[set[str]] = [set() for _ in facts]
    done = asyncio.Event()

    def look(type: EventType, pod: Json, old: Json | None) -> None:
        for n, fact in enumerate(facts):
            if fact(pod) and type is not EventType.DELETED:
                held[n].add(pod["metadata"]["uid"])
            if found[n] is None and len(held[n]) >= count:
                found[n] = asyncio.get_running_loop().time()
        if None not in found:
            done.set()

    pods.on_change(look)
    try:
        async with asyncio.timeout(GIVE_UP_S):
            await done.wait()
    finally:
        watching.cancel()
    return [t for t in found if t is not None]


async def measure(args: argparse.Namespace, folder: Path) -> float:
    pool = PoolConfig("gpu", "on-demand", gpus=GPUS, nodes=args.nodes, stock=args.nodes, provision=False)
    config = WorldConfig(seed=1, time_scale=args.time_scale, pools=(pool,))
    binaries = find_binaries(CONTROL_PLANE, args.bin_dir)
    target = ControlPlaneTarget(Wanted(config), binaries, Places(folder, folder / "logs"))
    loop = asyncio.get_running_loop()
    started = loop.time()
    try:
        connection = await target.up()
        up = loop.time()
        async with HttpKube(connection.kubeconfig) as kube:
            while sum(map(is_ready, (await kube.list(NODE)).items)) < args.nodes:
                await asyncio.sleep(0.2)
            nodes = loop.time()
            await kube.create(NAMESPACE, {"metadata": {"name": NS}})
            seen = asyncio.create_task(until(kube, args.pods, is_bound, is_running))
            await asyncio.sleep(0.2)  # the watch is there before the first pod
            created = loop.time()
            await kube.create(DEPLOYMENT, deployment(args.pods))
            bound, running = await seen
        print(f"up, with its nodes starting  {up - started:6.1f} s")
        print(f"{args.nodes} nodes Ready after       {nodes - started:6.1f} s")
        print(f"{args.pods} pods bound after       {bound - created:6.1f} s")
        print(f"{args.pods} pods Running after     {running - created:6.1f} s")
        print(processes(folder))
        return (nodes - up) + (running - created)
    finally:
        await target.down()


def processes(folder: Path) -> str:
    """Memory and CPU of each program that names the run's folder."""
    listed = subprocess.run(["ps", "-eo", "rss,times,args", "-ww"], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listed.splitlines() if str(folder) in line and "stack.guard" not in line]
    return "\n".join(f"{int(rss) / 1024:7.0f} MB  {cpu:>4} s CPU  {_name(words)}" for rss, cpu, words in rows)


def _name(words: str) -> str:
    return "nodes, cloud and gateway" if "surround" in words else Path(words.split()[0]).name


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--time-scale", type=float, default=5.0)
    parser.add_argument("--bin-dir", type=Path)
    args = parser.parse_args()
    wall = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="control-plane-") as folder:
        took_s = asyncio.run(measure(args, Path(folder)))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"all in all {time.monotonic() - wall:.0f} s, {used.ru_utime + used.ru_stime:.0f} s of CPU")
    print(f"nodes Ready and pods Running: {took_s:.1f} s after the control plane was up (at most {LONGEST_S:g} wanted)")
    return 0 if took_s <= LONGEST_S else 1


if __name__ == "__main__":
    sys.exit(main())
