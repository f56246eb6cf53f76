"""The supervisor's process of a crash test: the real supervisor, on a cluster that stands already and outlives it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.faults.pick import FleetNode
from harness.run.preparing import prepare
from harness.run.running import begin_run
from harness.run.supervisor import Supervisor, stop_on_signals
from harness.run.view import PlainView
from harness.targets.base import Connection


class Standing:
    """A target that somebody else brought up and will take down."""

    name = "embedded"
    real: tuple[str, ...] = ()
    emulated: tuple[str, ...] = ()
    versions: Mapping[str, str] = {}

    def __init__(self, connection: Connection, log: Path) -> None:
        self._connection = connection
        self.log = log

    async def up(self) -> Connection:
        return self._connection

    async def down(self) -> None:
        return None

    def died(self) -> str | None:
        return None

    def planned_fleet(self) -> Sequence[FleetNode]:
        return ()


async def _supervise(supervisor: Supervisor) -> None:
    stop_on_signals(supervisor)
    await supervisor.run()


def supervise(experiment: Path, connection: Path, reports: Path, seed: int, log: Path) -> None:
    """In a process of its own; says at last how the run ended."""
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.setsid()
    prepared = prepare(experiment, seed=seed, target="embedded", cut=None)
    run_dir, spec_path, command = begin_run(prepared, reports, ["crash"])
    target = Standing(Connection.read(connection), run_dir.log("world"))
    with PlainView() as view:
        supervisor = Supervisor(
            prepared.experiment, prepared.profile, prepared.plan, target, run_dir, view,
            command=command, spec_path=spec_path,
        )  # fmt: skip
        asyncio.run(_supervise(supervisor))
    print(f"ended {supervisor.progress.ended}: {supervisor.progress.ended_detail}", flush=True)
