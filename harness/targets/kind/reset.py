"""A kept cluster back to its beginning: its workers without power but for those that run at the start, its API server
without what earlier runs brought.

Whatever befell a worker goes with its power: a stopped kubelet, rules of a firewall, dead containers. What runs at the
start boots anew and registers a Node anew, as a parked worker does when the cloud gives it out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from harness.kube.port import NODE
from harness.targets.kind.commands import KindCommands
from harness.targets.kind.containers import ContainerMachines
from harness.targets.kind.inventory import ApiServer, Inventory, NotAsItWas, delete_nodes, return_to

CLEAN_S = 60.0


async def reset(
    commands: KindCommands, kube: ApiServer, workers: Collection[str], on: Collection[str], earlier: Inventory
) -> None:
    """NotAsItWas, or another TargetError, where it cannot be shown that all is as it was. The workers in ``on`` boot
    when it returns; whether they come up is for the caller to see."""
    machines = ContainerMachines(commands.docker, ())
    await asyncio.gather(*(machines.rest(node) for node in workers))
    before = {node["metadata"]["uid"] for node in (await kube.list(NODE)).items if _name(node) in workers}
    await delete_nodes(kube, workers)
    cleaning = asyncio.create_task(return_to(kube, earlier, CLEAN_S))
    try:
        for node in workers:  # one after the other: the addresses are given out in the order of the names
            if node in on:
                await machines.power_on(node)
        await cleaning
    finally:
        cleaning.cancel()
        await asyncio.gather(cleaning, return_exceptions=True)
    running = {name for name, state in (await commands.states()).items() if state == "running"} & set(workers)
    if running != set(on):
        raise NotAsItWas(f"of its workers run {', '.join(sorted(running)) or 'none'}, not {', '.join(sorted(on))}")
    left = [n for n in (await kube.list(NODE)).items if n["metadata"]["uid"] in before]
    if left:
        raise NotAsItWas(f"Nodes of the run before are still there: {', '.join(map(_name, left))}")


def _name(node: dict[str, object]) -> str:
    meta = node["metadata"]
    assert isinstance(meta, dict)
    return str(meta["name"])
