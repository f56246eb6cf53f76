"""How a run ends: who still looks at the machine while the target goes down."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.errors import TargetError
from harness.faults.pick import FleetNode
from harness.run.preparing import prepare
from harness.run.running import begin_run
from harness.run.supervisor import Supervisor
from harness.run.view import PlainView
from harness.targets.base import Connection

EXPERIMENT = Path(__file__).parents[3] / "experiments" / "spot-interruption-during-burst.yaml"


class NeverUp:
    """A target that notes which threads there are as it comes up and as it goes down."""

    name = "embedded"
    real: tuple[str, ...] = ()
    emulated: tuple[str, ...] = ()
    versions: Mapping[str, str] = {}

    def __init__(self, log: Path) -> None:
        self.log = log
        self.threads: dict[str, set[str]] = {}

    async def up(self) -> Connection:
        self.threads["up"] = {thread.name for thread in threading.enumerate()}
        raise TargetError("there is none")

    async def down(self) -> None:
        self.threads["down"] = {thread.name for thread in threading.enumerate()}

    def died(self) -> str | None:
        return None

    def planned_fleet(self) -> Sequence[FleetNode]:
        return ()


def test_nobody_watches_the_machine_while_the_target_goes_down(tmp_path: Path) -> None:
    prepared = prepare(EXPERIMENT, seed=1, target="embedded", cut=None)
    run_dir, spec_path, command = begin_run(prepared, tmp_path, ["run"])
    target = NeverUp(run_dir.log("world"))
    with PlainView() as view:
        supervisor = Supervisor(
            prepared.experiment, prepared.profile, prepared.plan, target, run_dir, view,
            command=command, spec_path=spec_path,
        )  # fmt: skip
        progress = asyncio.run(supervisor.run())
    assert (progress.ended, progress.ended_detail) == ("error", "there is none")
    watchers = {"run-queue", "watchdog"}
    assert watchers <= target.threads["up"]
    assert not watchers & target.threads["down"]
