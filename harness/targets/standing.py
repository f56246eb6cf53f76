"""A cluster that outlives the command that started it: ``up`` and ``down``. Its state lies in ``.gpu-harness/``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from harness.errors import BadInput, TargetError, Where
from harness.processes import proc
from harness.spec.experiment import load_experiment
from harness.stack.description import in_order
from harness.stack.find_addons import find_addons
from harness.targets.base import CONNECTION_FILE, Connection
from harness.targets.choosing import TARGETS, check_stack, check_target
from harness.targets.kind.kept import delete_kept
from harness.targets.wanted import wanted_by

FOLDER = Path(".gpu-harness")
PROCESS_FILE = "process.json"
HOLDER_LOG = "holder.log"
PROGRESS = "... "
"""How a line of the holder begins that tells what the target is at."""
UP_TIMEOUT_S = 900
"""Longer than any target's own patience."""
DOWN_TIMEOUT_S = 15.0
DOWN_TIMEOUTS_S: Mapping[str, float] = {"kind": 330.0}
"""Where it takes longer: Docker removes the disks of all nodes."""


def bring_up(
    experiment: Path | None,
    *,
    target: str = "embedded",
    bin_dir: Path | None = None,
    seed: int,
    ttl_s: float,
    stack: Sequence[str] = (),
) -> Connection:
    """Starts a cluster with the real components of ``stack`` and of the experiment, whose manifests it applies. Refuses
    while one of ours is up here."""
    check_target(target)
    if target not in TARGETS:
        raise BadInput(
            f"--target {target} is a cluster that is there already", where=Where("--target"),
            hint=f"`up` starts one of {', '.join(TARGETS)}",
        )  # fmt: skip
    TARGETS[target](bin_dir)  # what is missing is said here, and not in a log
    if experiment is not None:
        read = load_experiment(experiment)
        check_stack(target, read)
        wanted_by(read, seed)
        stack = (*read.settings.stack, *stack)
    find_addons(in_order(stack), bin_dir)
    if (pid := _our_process()) is not None:
        raise BadInput(f"a cluster is up already (process {pid})", where=Where(str(FOLDER)), hint="gpu-harness down")
    argv = ["--folder", str(FOLDER), "--seed", str(seed), "--ttl-s", str(ttl_s)]
    argv += ["--experiment", str(experiment)] if experiment else []
    argv += ["--bin-dir", str(bin_dir)] if bin_dir else []
    argv += [word for name in stack for word in ("--stack", name)]
    try:
        (FOLDER / "logs").mkdir(parents=True, exist_ok=True)
        (FOLDER / CONNECTION_FILE).unlink(missing_ok=True)
        process = _start(target, argv)
    except OSError as error:
        raise BadInput(
            f"cannot write here: {error.strerror}", where=Where(str(FOLDER)), hint="change folder"
        ) from error
    try:
        _await_ready(process)
        return Connection.read(FOLDER / CONNECTION_FILE)
    except BaseException:
        process.terminate()
        process.wait()
        raise


def take_down() -> str:
    """Stops the process that ``up`` recorded, and only if it is still that one; and takes a kind cluster down that runs
    have kept. Says what it did."""
    said = [_stop_what_is_up(), delete_kept()]
    return "\n".join(filter(None, said)) or "no cluster of ours is up in this folder"


def _stop_what_is_up() -> str:
    pid, log = _our_process(), FOLDER / "logs" / HOLDER_LOG
    (FOLDER / CONNECTION_FILE).unlink(missing_ok=True)
    if pid is None:
        (FOLDER / PROCESS_FILE).unlink(missing_ok=True)  # of one that died; its end has been told
        return ""
    told = len(_progress(log))
    _signal(pid, signal.SIGTERM)
    deadline = time.monotonic() + _patience_s()
    while _our_process() == pid:
        told = _tell_progress(log, told)
        if time.monotonic() > deadline:
            _signal(pid, signal.SIGKILL)  # what it held goes with it, by its parent pipes
        time.sleep(0.05)
    (FOLDER / PROCESS_FILE).unlink(missing_ok=True)
    return f"stopped the cluster (process {pid})"


def _signal(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):  # it has ended meanwhile, which is what was wanted
        os.kill(pid, number)


def record(pid: int, target: str) -> None:
    """Which process holds the cluster that is up here."""
    recorded = {"pid": pid, "started": _start_ticks(pid), "target": target}
    (FOLDER / PROCESS_FILE).write_text(json.dumps(recorded))


def _patience_s() -> float:
    """How long the target that is up may take to go down in good order."""
    try:
        target = json.loads((FOLDER / PROCESS_FILE).read_text()).get("target")
    except (OSError, ValueError, AttributeError):
        return DOWN_TIMEOUT_S
    return DOWN_TIMEOUTS_S.get(target, DOWN_TIMEOUT_S)


def _start(target: str, args: list[str]) -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-m", "harness.targets.holding", "--target", target, *args]
    with (FOLDER / "logs" / HOLDER_LOG).open("wb") as log:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    try:
        record(process.pid, target)
    except BaseException:  # a full disk, say: no `down` would find it
        process.terminate()
        process.wait()
        raise
    return process


def _await_ready(process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + UP_TIMEOUT_S
    log, told = FOLDER / "logs" / HOLDER_LOG, 0
    while not (FOLDER / CONNECTION_FILE).exists():
        told = _tell_progress(log, told)
        if process.poll() is not None:
            said = last_words(FOLDER)
            raise TargetError(said or "the cluster did not come up", hint=None if said else f"its log: {log}")
        if time.monotonic() > deadline:
            raise TargetError(f"the cluster did not come up in {UP_TIMEOUT_S} s", hint=f"its log: {log}")
        time.sleep(0.05)


def last_words(folder: Path) -> str:
    """What the process that held the cluster said of its end; empty where it said nothing."""
    try:
        lines = (folder / "logs" / HOLDER_LOG).read_text(errors="replace").splitlines()
    except OSError:
        return ""
    words = "\n".join(line for line in lines if not line.startswith(PROGRESS))
    return words.strip().removeprefix("gpu-harness: ")


def _tell_progress(log: Path, told: int) -> int:
    """Prints what the holder has said it is at, beyond the first ``told`` lines; how many there are now."""
    lines = _progress(log)
    for line in lines[told:]:
        print(line, file=sys.stderr, flush=True)
    return len(lines)


def _progress(log: Path) -> list[str]:
    try:
        return [line for line in log.read_text(errors="replace").splitlines() if line.startswith(PROGRESS)]
    except OSError:
        return []


def _our_process() -> int | None:
    """The pid that ``up`` recorded, if that very process still runs (a reused pid has another start time)."""
    try:
        recorded = json.loads((FOLDER / PROCESS_FILE).read_text())
        pid, started = int(recorded["pid"]), recorded["started"]
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return None
    return pid if started is not None and _start_ticks(pid) == started else None


def _start_ticks(pid: int) -> int | None:
    """None when there is no such process any more."""
    try:
        found = proc.stat(pid)
    except PermissionError:
        return None  # somebody else's, so not the one that we started
    return None if found is None or found.over else found.start_ticks
