"""The load generator stands still: a negative control, for it is the harness that fails here, not the cluster."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import ClassVar

from harness.errors import GuardRefused, InternalError, TargetError
from harness.faults import proc
from harness.faults.pick import FleetNode
from harness.faults.port import TARGETS, VIRTUAL, Fidelity, Ground, LoadControl, NotObserved
from harness.faults.undo import ResumeProcess, Undo
from harness.faults.wait import TookTooLong, until

PROCESSES_FILE = "processes.json"
RUN_DIR_ENV = "GPU_HARNESS_RUN_DIR"
LOAD = "load"
LOAD_COMMAND = "locust"


@dataclass(frozen=True, slots=True)
class PauseLoad:
    """Blast radius: this run's own load process, stopped for ``hold_s`` scenario seconds."""

    name: ClassVar[str] = "pause_load"
    colour: ClassVar[str] = "#9467bd"
    disruptive: ClassVar[bool] = False
    fidelity: ClassVar[Mapping[str, Fidelity]] = dict.fromkeys(TARGETS, Fidelity.NATIVE) | {VIRTUAL: Fidelity.EMULATED}

    hold_s: float

    def pick(self, fleet: Sequence[FleetNode], rng: Random) -> tuple[str, ...]:
        return (LOAD,)

    def longest_s(self) -> float:
        return self.hold_s

    async def inject(self, ground: Ground, fault_id: str, targets: Sequence[str]) -> None:
        load = _load(ground)
        ground.undo.before(fault_id, load.resume_undo())
        load.pause()

    async def observe(self, ground: Ground, targets: Sequence[str]) -> str:
        load = _load(ground)

        async def look() -> str | None:
            return load.paused()

        try:
            return await until(look, ground.patience.slack_s, ground.patience.poll_s)
        except TookTooLong as error:
            raise NotObserved(f"the load was told to stop, but did not {error}") from error

    async def outlast(self, ground: Ground, fault_id: str, targets: Sequence[str]) -> str:
        detail = "nothing was left to resume"
        try:
            await asyncio.sleep(ground.clock.clock_s(self.hold_s))
        finally:
            # Also when the hold is interrupted: a stopped process could not hear that the run is over.
            for entry in ground.undo.replay().pending:
                if entry.fault_id == fault_id and entry.undo is not None:
                    detail = _load(ground).resume(entry.undo)
                    ground.undo.undone(entry.seq, detail)
        return detail

    @staticmethod
    async def heal(ground: Ground, undo: Undo) -> str:
        return _load(ground).resume(undo)


class ProcessLoad:
    """The load as a process of its own, stopped and resumed by signals."""

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir

    def resume_undo(self) -> Undo:
        pid = load_pid(self._run_dir)
        found = proc.stat(pid)
        if found is None or found.over:
            raise TargetError(f"the load process {pid} has ended already")
        return ResumeProcess(pid, found.start_ticks)

    def pause(self) -> None:
        os.kill(load_pid(self._run_dir), signal.SIGSTOP)

    def paused(self) -> str | None:
        pid = load_pid(self._run_dir)
        found = proc.stat(pid)
        return f"process {pid} is stopped (state T)" if found is not None and found.stopped else None

    def resume(self, undo: Undo) -> str:
        if not isinstance(undo, ResumeProcess):
            raise InternalError(f"pause_load cannot undo {undo.kind} of a process")
        return _resume(undo)


def _load(ground: Ground) -> LoadControl:
    return ground.load or ProcessLoad(ground.run_dir)


def load_pid(run_dir: Path) -> int:
    """The load process of this run, proven to be ours before any signal is sent to it."""
    file = run_dir / PROCESSES_FILE
    try:
        pid = json.loads(file.read_text())[LOAD]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TargetError(
            f"no load process is known in {file}: {error}",
            hint="pause_load works in `gpu-harness run`, which starts the load",
        ) from error
    if not isinstance(pid, int) or pid <= 1:
        raise GuardRefused(f"{file} names {pid!r} as the load process")
    command = proc.command_line(pid)
    if not any(LOAD_COMMAND in part for part in command):
        raise GuardRefused(f"process {pid} is not the load of this run: {' '.join(command) or 'it is not there'}")
    of_run = proc.environment(pid).get(RUN_DIR_ENV)
    if of_run is not None and os.path.realpath(of_run) != os.path.realpath(run_dir):
        raise GuardRefused(f"process {pid} is the load of another run: {of_run}")
    return pid


def _resume(undo: ResumeProcess) -> str:
    found = proc.stat(undo.pid)
    if found is None or found.over or found.start_ticks != undo.start_ticks:
        return f"process {undo.pid} has ended, nothing to resume"
    try:
        os.kill(undo.pid, signal.SIGCONT)
    except ProcessLookupError:
        return f"process {undo.pid} has ended, nothing to resume"
    return f"process {undo.pid} was resumed"
