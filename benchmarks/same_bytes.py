"""The same seed gives the same world: every write to the API, with its moment, in two lives of each seed.

``python benchmarks/same_bytes.py [--seeds 20] [--nodes 4] [--pods 20] [--life-s 120]`` prints one line per seed and
exits with 1 if two lives of one seed differ, or if two seeds do not.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import sys

from virtual_world import NS, autoscaler, deployment

from fakes.config import PoolConfig, WorldConfig
from fakes.kube.store import Change, Name, Shelf
from harness.kube.port import DEPLOYMENT, HPA, NAMESPACE
from harness.run.virtual.cluster import Cluster
from harness.run.virtual.loop import VirtualLoop


class Writes:
    """A digest of all that is written while it looks on."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self.count = 0
        self._apply = Shelf.apply

    def __enter__(self) -> Writes:
        plain = self._apply

        def apply(shelf: Shelf, name: Name, change: Change) -> None:
            moment = asyncio.get_running_loop().time()
            self.digest.update(f"{moment!r} {change.type.value} ".encode() + change.now.data() + b"\n")
            self.count += 1
            plain(shelf, name, change)

        Shelf.apply = apply  # type: ignore[method-assign, assignment]  # the benchmark looks on
        return self

    def __exit__(self, *_: object) -> None:
        Shelf.apply = self._apply  # type: ignore[method-assign]  # as above


async def live(seed: int, nodes: int, pods: int, life_s: float) -> None:
    pool = PoolConfig("gpu", "on-demand", gpus=-(-pods // nodes), nodes=nodes, stock=nodes, provision=False)
    cluster = Cluster(WorldConfig(seed=seed, time_scale=1.0, pools=(pool,), gateway_namespace=NS))
    kube, world = cluster.kube(), asyncio.create_task(cluster.world.run())
    await kube.create(NAMESPACE, {"metadata": {"name": NS}})
    await kube.create(DEPLOYMENT, deployment(pods))
    await kube.create(HPA, autoscaler(pods))
    await asyncio.sleep(life_s)
    world.cancel()
    await asyncio.wait([world])


def life(seed: int, args: argparse.Namespace) -> tuple[str, int]:
    with Writes() as writes, asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(live(seed, args.nodes, args.pods, args.life_s))
    return writes.digest.hexdigest()[:16], writes.count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--pods", type=int, default=20)
    parser.add_argument("--life-s", type=float, default=120.0)
    args = parser.parse_args()
    found = {}
    for seed in range(1, args.seeds + 1):
        first, second = life(seed, args), life(seed, args)
        print(f"seed {seed}: {first[1]} writes, {first[0]} and {second[0]}")
        if first != second:
            sys.exit(f"seed {seed}: two lives differ")
        found[first[0]] = seed
    if len(found) < args.seeds:
        sys.exit("two seeds gave the same life, so the seed plays no part")
    print(f"{args.seeds} seeds, each twice the same bytes")


if __name__ == "__main__":
    main()
