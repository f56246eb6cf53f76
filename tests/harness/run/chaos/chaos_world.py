"""A small world for real ``chaos run`` processes: the embedded API and cloud over HTTP, in a thread of this process."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import yaml
from aiohttp import web

from fakes.clock import WallClock
from fakes.cloud.cloud import Cloud, Instance
from fakes.config import PoolConfig
from fakes.control.api import control_app
from fakes.control.control import Control
from fakes.kube.local import LocalKube
from fakes.kube.server import make_app
from fakes.kube.store import Store
from fakes.nodes.labels import node_labels
from fakes.timing import Timing
from harness.clock import monotonic_ns
from harness.faults.undo import Replay, replay
from harness.kube.port import DEPLOYMENT, NAMESPACE, NODE, Json, NotFound
from harness.processes.parent import PARENT_FD_ENV
from harness.run.chaos.command import ChaosOutcome, chaos_command, read_journal
from harness.targets.base import Connection
from harness.targets.embedded import kubeconfig_text

TIME_SCALE = 60.0
LONGEST_S = 90
"""Far beyond any run here; only so that a hang ends in a failed test."""
SPOT = PoolConfig("spot", "spot", nodes=3, stock=3)
LABELS = {"app": "llm"}


class ChaosWorld:
    """Three spot nodes and one ready Deployment. A notice taints the node, a lost instance takes its Node away."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="chaos-world", daemon=True)
        self._thread.start()
        self._runners: list[web.AppRunner] = []
        self._tasks: list[asyncio.Task[None]] = []
        self.api_url, self.control_url = self.do(self._up())

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        future: Future[Any] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return future.result(LONGEST_S)

    def close_servers(self) -> None:
        """From here on every connection is refused."""
        self.do(self._down())

    def close(self) -> None:
        self.close_servers()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def states(self) -> dict[str, str]:
        return {i.node: str(i.state) for i in self.cloud.instances.values()}

    async def _up(self) -> tuple[str, str]:
        self.kube = LocalKube(Store(WallClock(datetime(2026, 1, 1, tzinfo=UTC)), Random(1)), "tests")
        self.cloud = Cloud((SPOT,), Timing(TIME_SCALE), Random(1), boot=self._boot, lost=self._lost)
        self.cloud.on_notice.append(self._notice)
        self.cloud.start()
        await self.kube.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "inference"}})
        await self._deployment()
        return await self._serve(make_app(self.kube._store)), await self._serve(control_app(Control(self.cloud), {}))

    async def _down(self) -> None:
        for runner in self._runners:
            await runner.cleanup()
        self._runners.clear()
        await asyncio.gather(*self._tasks)

    async def _serve(self, app: web.Application) -> str:
        runner = web.AppRunner(app, shutdown_timeout=0)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self._runners.append(runner)
        return "http://{}:{}".format(*runner.addresses[0])

    async def _deployment(self) -> None:
        container = {"name": "vllm", "image": "vllm"}
        await self.kube.create(
            DEPLOYMENT,
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": "llm", "namespace": "inference"},
                "spec": {
                    "replicas": 2,
                    "selector": {"matchLabels": LABELS},
                    "template": {"metadata": {"labels": LABELS}, "spec": {"containers": [container]}},
                },
            },
        )
        status = {"status": {"replicas": 2, "readyReplicas": 2, "availableReplicas": 2}}
        await self.kube.patch(DEPLOYMENT, "llm", status, "inference", subresource="status")

    def _boot(self, instance: Instance) -> None:
        node: Json = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": instance.node, "labels": node_labels(SPOT, instance.node)},
            "spec": {"providerID": f"fake://zone-a/{instance.id}"},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        }
        self._later(self.kube.create(NODE, node))

    def _notice(self, instance: Instance) -> None:
        taints = [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]
        self._later(self.kube.patch(NODE, instance.node, {"spec": {"taints": taints}}))

    def _lost(self, instance: Instance) -> None:
        self._later(self.kube.delete(NODE, instance.node))

    def _later(self, work: Coroutine[Any, Any, Any]) -> None:
        async def do() -> None:
            with contextlib.suppress(NotFound):
                await work

        self._tasks.append(asyncio.get_running_loop().create_task(do()))


def action(func: str, **arguments: Any) -> dict[str, Any]:
    provider = {"type": "python", "module": "harness.run.chaos.actions", "func": func, "arguments": arguments}
    return {"type": "action", "name": func, "provider": provider}


def experiment(*method: dict[str, Any], **changes: Any) -> dict[str, Any]:
    probe = {
        "type": "probe",
        "name": "the workload is steady",
        "tolerance": True,
        "provider": {
            "type": "python",
            "module": "harness.run.chaos.probes",
            "func": "workload_steady",
            "arguments": {"ready_min": 2},
        },
    }
    control = {"name": "gpu-harness", "provider": {"type": "python", "module": "harness.run.chaos.control"}}
    extension = {
        "name": "gpu-harness",
        "time_scale": TIME_SCALE,
        "workload": {"namespace": "inference", "selector": "app=llm"},
    }
    return {
        "title": "t",
        "description": "d",
        "controls": [control],
        "steady-state-hypothesis": {"title": "steady", "probes": [probe]},
        "method": list(method),
        "rollbacks": [action("heal")],
        "extensions": [extension],
    } | changes


def spot(after_s: float = 0, notice_s: float = 60, count: int = 1) -> dict[str, Any]:
    nodes = {"selector": "karpenter.sh/capacity-type=spot", "count": count}
    return action("spot_interruption", after_s=after_s, nodes=nodes, notice_s=notice_s)


@dataclass
class ChaosRun:
    """One run directory with what a ``chaos run`` in it needs, and what it left."""

    folder: Path
    world: ChaosWorld
    env: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[str] | None = None

    def prepare(
        self, content: Mapping[str, Any], seed: int = 1, targets: Mapping[str, list[str]] | None = None
    ) -> None:
        (self.folder / "experiment.yaml").write_text(yaml.safe_dump(dict(content)))
        self.write_connection(self.folder / "connection.json")
        if targets is not None:
            faults = [{"fault_id": fault_id, "targets": names} for fault_id, names in targets.items()]
            (self.folder / "plan.json").write_text(json.dumps({"seed": seed, "faults": faults}))
        now = str(monotonic_ns())
        self.env |= {
            "GPU_HARNESS_RUN_DIR": str(self.folder),
            "GPU_HARNESS_START_NS": now,
            "GPU_HARNESS_LOAD_START_NS": "0",
            "GPU_HARNESS_CONNECTION": str(self.folder / "connection.json"),
        }

    def write_connection(self, path: Path) -> None:
        kubeconfig = self.folder / "kubeconfig"
        kubeconfig.write_text(kubeconfig_text(self.world.api_url))
        Connection("embedded", kubeconfig, "http://s", self.world.control_url, "inference", TIME_SCALE).write(path)

    def start(self, pass_fds: tuple[int, ...] = (), argv: list[str] | None = None) -> None:
        (self.folder / "log").touch()
        command = argv or chaos_command(
            self.folder / "experiment.yaml", self.folder / "chaos.json", Path(sys.executable)
        )
        env = {k: v for k, v in os.environ.items() if not k.startswith("GPU_HARNESS_")} | self.env
        with (self.folder / "log").open("w") as log:
            self.process = subprocess.Popen(
                command, cwd=self.folder, env=env, stdout=log, stderr=subprocess.STDOUT, text=True,
                pass_fds=pass_fds, start_new_session=True,
            )  # fmt: skip

    def start_with_parent(self) -> int:
        """Returns the writing end of the parent pipe; closing it is the parent's death."""
        reading, writing = os.pipe()
        self.env[PARENT_FD_ENV] = str(reading)
        self.start(pass_fds=(reading,))
        os.close(reading)
        return writing

    def wait(self) -> int:
        assert self.process is not None
        try:
            return self.process.wait(LONGEST_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"chaos hung; it had said:\n{self.log}") from None

    def until(self, look: Callable[[], bool]) -> None:
        assert self.process is not None
        deadline = time.monotonic() + LONGEST_S
        while not look():
            assert self.process.poll() is None, f"chaos ended too early:\n{self.log}"
            assert time.monotonic() < deadline, f"not seen in time; chaos had said:\n{self.log}"
            time.sleep(0.02)

    def until_stage(self, stage: str) -> None:
        self.until(lambda: stage in self.stages())

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    @property
    def outcome(self) -> ChaosOutcome:
        outcome = read_journal(self.folder / "chaos.json")
        assert outcome is not None, self.log
        return outcome

    @property
    def undo(self) -> Replay:
        return replay(self.folder / "undo.jsonl")

    def events(self) -> list[dict[str, Any]]:
        return _lines(self.folder / "history" / "faults.jsonl")

    def stages(self, fault_id: str | None = None) -> list[str]:
        return [e["stage"] for e in self.events() if fault_id in (None, e["fault_id"])]

    def marks(self) -> dict[str, str]:
        return {m["name"]: m["value"] for m in _lines(self.folder / "history" / "marks.jsonl")}


def _lines(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]


@contextmanager
def chaos_run(folder: Path) -> Iterator[ChaosRun]:
    world = ChaosWorld()
    run = ChaosRun(folder, world)
    try:
        yield run
    finally:
        if run.process is not None and run.process.poll() is None:
            run.process.kill()
            run.process.wait()
        world.close()
