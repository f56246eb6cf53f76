"""The process beside a kind cluster: the cloud whose instances are node containers, Karpenter's rules, and the control
API that the faults turn.

``python -m harness.targets.kind.control`` runs until SIGTERM or until its parent is gone. What concerns gateway and
metrics it passes on to the front, which runs in the cluster.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

from fakes.clock import WallClock
from fakes.cloud.cloud import Cloud, Instance
from fakes.cloud.node_controller import CloudNodeController
from fakes.config import WorldConfig
from fakes.control.api import control_app
from fakes.control.control import Control
from fakes.control.knobs import NEVER, Value, seconds_or_never
from fakes.control.wiring import wire_cloud
from fakes.controllers.karpenter.disruption import Disruption
from fakes.controllers.karpenter.lifecycle import NodeClaimLifecycle
from fakes.controllers.karpenter.marks import ClaimMarks
from fakes.controllers.karpenter.nodepool_status import NodePoolStatus
from fakes.controllers.karpenter.provisioner import Provisioner
from fakes.controllers.karpenter.termination import Termination
from fakes.gateway.links import CLIENTS, PODS
from fakes.serving import Served, serve_while
from fakes.timing import PRESETS, Timing
from harness.errors import TargetError
from harness.faults.world_control import HttpWorldControl
from harness.kube.http import HttpKube
from harness.kube.port import Kube
from harness.kube.shared_watches import SharedWatches, SharingKube
from harness.targets.kind.cluster_file import names_by_pool, workers_of
from harness.targets.kind.containers import ContainerMachines
from harness.targets.machine_knobs import NotDone, wire_machines

Deed = Coroutine[Any, Any, None]


class Fleet:
    """The cloud's instances as containers. A deed that fails ends the world, which says why."""

    def __init__(self, machines: ContainerMachines, time_scale: float) -> None:
        self.machines = machines
        self._time_scale = time_scale
        self._late: dict[str, Value] = {}
        self._waiting: dict[str, set[str]] = {}
        self._deeds: asyncio.Queue[Deed] = asyncio.Queue()

    def boot(self, instance: Instance) -> None:
        if instance.node not in self.machines.names():
            self._deeds.put_nowait(self._power_on(instance))

    def lost(self, instance: Instance) -> None:
        machines = self.machines
        gone = machines.power_off if instance.reclaimed else machines.shut_down
        self._deeds.put_nowait(gone(instance.node))

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            while True:
                tasks.create_task(await self._deeds.get())

    def wire(self, control: Control) -> None:
        wire_machines(control, self.machines)
        control.knobs.add("device.plugin_late", lambda: list(control.cloud.pools), seconds_or_never, self._turn_late)

    async def _power_on(self, instance: Instance) -> None:
        late = self._late.get(instance.pool.name)
        await self.machines.switch_plugin(instance.node, {} if late is None else {"plugin_late": late})
        if late is not None:
            self._waiting.setdefault(instance.pool.name, set()).add(instance.node)
        await self.machines.power_on(instance.node)

    async def _turn_late(self, pool: str, value: Value) -> None:
        """For machines that boot from now on; turned back, also for those whose plugin waits."""
        if value is not None:
            self._late[pool] = value if value == NEVER else float(value) / self._time_scale
            return
        self._late.pop(pool, None)
        for node in self._waiting.pop(pool, ()):
            if node in self.machines.names():
                await self.machines.switch_plugin(node, {})


def wire_front(control: Control, front: HttpWorldControl, nodes: Callable[[], list[str]]) -> None:
    """The knobs and verbs of gateway and metrics: checked and obeyed by the front."""

    def pass_on(knob: str) -> Callable[[str, Value], Awaitable[None]]:
        async def apply(target: str, value: Value) -> None:
            await _saying(front.turn(knob, target, value))

        return apply

    def links() -> list[str]:
        return [CLIENTS, PODS, *(f"node/{name}" for name in nodes())]

    for knob, targets in (
        ("net.link", links),
        ("gateway.endpoints_late_s", lambda: ["gateway"]),
        ("metrics.pipeline", lambda: ["pipeline"]),
    ):
        control.knobs.add(knob, targets, lambda value: None, pass_on(knob))
    control.add_verb(
        "restart_gateway", lambda: ["gateway"], lambda name, a: _saying(front.do("restart_gateway", name, a))
    )


async def _saying(deed: Awaitable[None]) -> None:
    try:
        await deed
    except (TargetError, ConnectionError) as error:
        raise NotDone(str(error)) from error


async def control(config: WorldConfig, kubeconfig: Path, ready: Path, *, docker: str, cluster: str, front: str) -> None:
    """``ready`` is written with ``control_url`` once it answers."""
    async with AsyncExitStack() as connections:

        def connection(field_manager: str) -> HttpKube:
            opened = HttpKube(kubeconfig, field_manager=field_manager)
            connections.push_async_callback(opened.close)
            return opened

        watches = SharedWatches(connection("kind-control"))
        karpenter: Kube = SharingKube(connection("karpenter"), watches)
        cloud_manager: Kube = SharingKube(connection("cloud-controller-manager"), watches)
        wall, timing = WallClock(datetime.now(UTC)), Timing(config.time_scale, PRESETS[config.preset])
        on = [worker.name for worker in workers_of(config, cluster) if not worker.parked]
        fleet = Fleet(ContainerMachines(docker, on), config.time_scale)
        cloud = Cloud(
            config.pools, timing, Random(f"{config.seed}:cloud"), boot=fleet.boot, lost=fleet.lost,
            bugs=config.planted_bugs, machines=names_by_pool(config, cluster),
        )  # fmt: skip
        made = Control(cloud)
        wire_cloud(made, cloud)
        fleet.wire(made)
        wire_front(
            made, await connections.enter_async_context(HttpWorldControl(front)), lambda: list(fleet.machines.names())
        )
        provisioner = Provisioner(karpenter, wall, timing, cloud, config.planted_bugs)
        parts = (
            fleet,
            provisioner,
            ClaimMarks(karpenter, wall, timing, provisioner.view),
            NodePoolStatus(karpenter, wall, provisioner.view),
            Disruption(karpenter, wall, timing, provisioner, config.planted_bugs),
            NodeClaimLifecycle(karpenter, wall, timing, cloud),
            Termination(karpenter, wall, timing, cloud, config.planted_bugs),
            CloudNodeController(cloud_manager, cloud),
        )

        async def run() -> None:
            try:
                async with asyncio.TaskGroup() as tasks:
                    for part in parts:
                        tasks.create_task(part.run())
                    cloud.start()
            finally:
                cloud.stop()

        info = {"time_scale": config.time_scale, "seed": config.seed}
        await serve_while(run(), {"control_url": Served(control_app(made, info))}, ready, ttl_s=None)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m harness.targets.kind.control")
    for name in ("config", "kubeconfig", "ready"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    for name in ("docker", "cluster", "front"):
        parser.add_argument(f"--{name}", required=True)
    args = parser.parse_args()
    asyncio.run(
        control(
            WorldConfig.read(args.config), args.kubeconfig, args.ready,
            docker=args.docker, cluster=args.cluster, front=args.front,
        )
    )  # fmt: skip


if __name__ == "__main__":
    main()
