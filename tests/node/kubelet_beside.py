"""Hollow kubelets beside real ones: the same scenarios on ``--target node`` and in the embedded world.

The real side takes some seven minutes; the hollow one runs in virtual time and takes seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

from kubelet_scenarios import NODE, Seen, now_s, play

from fakes.config import PoolConfig, WorldConfig
from harness.faults.world_control import HttpWorldControl
from harness.kube.http import HttpKube
from harness.kube.port import Kube
from harness.run.virtual.cluster import Cluster
from harness.run.virtual.loop import VirtualLoop
from harness.targets.choosing import TARGETS
from harness.targets.wanted import Places, Wanted

CONFIG = WorldConfig(
    seed=1, time_scale=1.0,
    pools=(
        PoolConfig("gpu", "on-demand", gpus=2, nodes=3, stock=3, provision=False),
        PoolConfig("cpu", "on-demand", gpus=0, nodes=1, stock=1, provision=False),
    ),
)  # fmt: skip
OFF_S = 4.0
SECONDS_APART_MAX = 12.0
"""A status tick, and what a busy machine adds."""


class HollowSide:
    def __init__(self, cluster: Cluster) -> None:
        self.kube: Kube = cluster.kube()
        self._cluster = cluster

    async def turn(self, knob: str, node: str, value: Any) -> None:
        await self._cluster.control.turn(knob, node, value)

    async def reboot_without_plugin(self, node: str) -> None:
        """A hollow node's plugin is late by itself when it reboots."""
        self._cluster.world.surroundings.kubelets[node].reboot(OFF_S)


class RealSide:
    def __init__(self, kube: Kube, control: HttpWorldControl) -> None:
        self.kube = kube
        self._control = control

    async def turn(self, knob: str, node: str, value: Any) -> None:
        await self._control.turn(knob, node, value)

    async def reboot_without_plugin(self, node: str) -> None:
        await self.turn("device.plugin", node, "down")
        await self.turn("node.kubelet", node, "off")
        await asyncio.sleep(OFF_S)
        await self.turn("node.kubelet", node, None)


async def _hollow(only: Collection[str]) -> dict[str, float | str]:
    cluster = Cluster(CONFIG)
    world = asyncio.create_task(cluster.world.run())
    try:
        kube = cluster.kube()
        while not await _all_have_gpus(kube):
            assert now_s() < 600, "the hollow nodes did not come up"
            await asyncio.sleep(1)
        return await play(HollowSide(cluster), only)
    finally:
        world.cancel()
        await asyncio.gather(world, return_exceptions=True)
        cluster.close()


async def _all_have_gpus(kube: Kube) -> bool:
    nodes = (await kube.list(NODE)).items
    return sum(int((n["status"].get("allocatable") or {}).get("nvidia.com/gpu", 0)) for n in nodes) == 6


def hollow(only: Collection[str] = ()) -> dict[str, float | str]:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(_hollow(only))


async def real(folder: Path, only: Collection[str] = ()) -> dict[str, float | str]:
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    target = TARGETS["node"](None)(Wanted(CONFIG), Places(folder, folder / "logs"))
    try:
        connection = await target.up()
        assert connection.control_url is not None
        async with contextlib.AsyncExitStack() as opened:
            kube = await opened.enter_async_context(HttpKube(connection.kubeconfig))
            control = await opened.enter_async_context(HttpWorldControl(connection.control_url))
            return await play(RealSide(kube, control), only)
    finally:
        await target.down()


def apart(name: str, one: float | str | None, other: float | str | None) -> bool:
    """Seconds may be a tick apart, words may not."""
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) > SECONDS_APART_MAX
    return one != other


def table(ours: Seen, theirs: Seen) -> tuple[str, list[str]]:
    """In Markdown, and the names of what is not the same."""
    differs = [name for name in dict.fromkeys((*theirs, *ours)) if apart(name, theirs.get(name), ours.get(name))]
    lines = ["| what | real kubelet | hollow kubelet |", "|---|---|---|"]
    for name in dict.fromkeys((*theirs, *ours)):
        mark = " **differs**" if name in differs else ""
        lines.append(f"| {name} | {theirs.get(name)} | {ours.get(name)}{mark} |")
    return "\n".join(lines), differs


def compare(reports: Path, only: Collection[str] = ()) -> int:
    """Prints the table; how many lines of it differ."""
    reports.mkdir(parents=True, exist_ok=True)
    ours = hollow(only)
    with tempfile.TemporaryDirectory(prefix="gpu-harness-node-") as folder:
        theirs = asyncio.run(real(Path(folder), only))
    (reports / "kubelet-beside.json").write_text(json.dumps({"real": theirs, "hollow": ours}, indent=1) + "\n")
    text, differs = table(ours, theirs)
    print(text)
    return len(differs)
