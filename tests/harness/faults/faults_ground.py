"""A ground for faults: the embedded store in process, a scripted cloud on 127.0.0.1, fast scenario time."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

from aiohttp import web

from fakes.clock import WallClock
from fakes.kube.local import LocalKube
from fakes.kube.store import Store
from harness.clock import RunClock, monotonic_ns
from harness.faults.fault import Fault, Strike
from harness.faults.log import FaultLog
from harness.faults.port import Ground, Objects, Patience
from harness.faults.undo import UndoJournal
from harness.faults.world_control import HttpWorldControl
from harness.kube.port import NAMESPACE, NODE, Json, Kube

TIME_SCALE = 600.0


@dataclass(slots=True)
class ScriptedCloud:
    """Instances by id with their state; ``on_notice`` plays the cluster's reaction, ``refuse`` answers instead."""

    instances: dict[str, str] = field(default_factory=dict)
    on_notice: Callable[[str], None] = lambda node: None
    refuse: dict[str, int] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    url: str = ""

    def add(self, node: str, state: str = "running") -> None:
        self.instances[f"i-{node}"] = state

    async def list(self, request: web.Request) -> web.Response:
        items = [
            {"id": i, "node": i.removeprefix("i-"), "pool": "spot", "state": state, "interrupt_at_s": None}
            for i, state in self.instances.items()
        ]
        return web.json_response({"items": items})

    async def interruption(self, request: web.Request) -> web.Response:
        instance = request.match_info["id"]
        self.calls.append(f"{request.method} {instance}")
        status = self.refuse.get(f"{request.method} {instance}") or self.refuse.get(request.method)
        if status:
            return web.json_response({"error": "scripted"}, status=status)
        if request.method == "POST":
            assert (await request.json())["notice_s"] > 0
            self.instances[instance] = "interrupting"
            self.on_notice(instance.removeprefix("i-"))
            return web.json_response({}, status=201)
        self.instances[instance] = "running"
        return web.json_response({})


@asynccontextmanager
async def cloud_server() -> AsyncIterator[ScriptedCloud]:
    cloud = ScriptedCloud()
    app = web.Application()
    app.router.add_get("/v1/instances", cloud.list)
    app.router.add_route("*", "/v1/instances/{id}/interruption", cloud.interruption)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    cloud.url = "http://{}:{}".format(*runner.addresses[0])
    try:
        yield cloud
    finally:
        await runner.cleanup()


def make_kube() -> LocalKube:
    return LocalKube(Store(WallClock(datetime(2026, 1, 1, tzinfo=UTC)), Random(1)), "tests")


async def add_node(kube: Kube, name: str, **labels: str) -> Json:
    return await kube.create(
        NODE,
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": {"providerID": f"fake://zone-a/i-{name}"},
        },
    )


async def add_namespace(kube: Kube, name: str) -> None:
    await kube.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


@asynccontextmanager
async def make_ground(
    run_dir: Path,
    kube: Kube,
    cloud_url: str | None = None,
    slack_s: float = 10.0,
    target: str = "embedded",
    objects: Objects = (),
) -> AsyncIterator[Ground]:
    clock = RunClock(monotonic_ns(), TIME_SCALE)
    world = HttpWorldControl(cloud_url) if cloud_url else None
    try:
        yield Ground(
            target=target,
            namespace="inference",
            kube=kube,
            clock=clock,
            undo=UndoJournal(run_dir, clock),
            run_dir=run_dir,
            world=world,
            manifest=lambda name: objects,
            patience=Patience(poll_s=0.01, slack_s=slack_s),
        )
    finally:
        if world:
            await world.__aexit__(None, None, None)


async def inject(fault: Fault, ground: Ground, fault_id: str, targets: tuple[str, ...]) -> None:
    """The step alone, as a process leaves it that is killed right after."""
    await fault.inject(Strike(fault, ground, fault_id, targets))


def make_log(ground: Ground) -> FaultLog:
    return FaultLog(ground.run_dir, ground.clock)


def events(run_dir: Path) -> list[dict[str, Any]]:
    file = run_dir / "history" / "faults.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def stages(run_dir: Path) -> list[str]:
    return [event["stage"] for event in events(run_dir)]
