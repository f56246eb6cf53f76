"""The load generator as a process of its own, stopped and resumed by signals."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

from harness.errors import GuardRefused, InternalError, TargetError
from harness.faults.port import Ground, LoadControl
from harness.faults.undo import ResumeProcess, Undo
from harness.processes import proc

PROCESSES_FILE = "processes.json"
RUN_DIR_ENV = "GPU_HARNESS_RUN_DIR"
LOAD = "load"
LOAD_COMMAND = "locust"


class ProcessLoad:
    """A ``LoadControl`` by the run's folder."""

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


def load_of(ground: Ground) -> LoadControl:
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
