"""A cluster that outlives the command that started it: ``up`` and ``down``. Its state lies in ``.gpu-harness/``."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from harness.errors import BadInput, TargetError, Where
from harness.kube.http import HttpKube
from harness.spec.experiment import HarnessSettings, load_experiment
from harness.targets.base import CONNECTION_FILE, Connection
from harness.targets.embedded import (
    AVAILABLE_TIMEOUT_S,
    START_TIMEOUT_S,
    connection_from,
    empty_settings,
    world_config,
)
from harness.targets.manifests import apply, read_manifests, wait_until_available

FOLDER = Path(".gpu-harness")
PROCESS_FILE = "process.json"


def bring_up(experiment: Path | None, *, seed: int, ttl_s: float) -> Connection:
    """Starts the embedded cluster and applies the experiment's manifests. Refuses while one of ours is up here."""
    loaded = load_experiment(experiment) if experiment else None
    settings = loaded.settings if loaded else empty_settings()
    objects = read_manifests(loaded.manifest_paths) if loaded else []
    if (pid := _our_process()) is not None:
        raise BadInput(f"a cluster is up already (process {pid})", where=Where(str(FOLDER)), hint="gpu-harness down")
    try:
        FOLDER.mkdir(exist_ok=True)
        process = _start(settings, seed, ttl_s)
    except OSError as error:
        raise BadInput(f"cannot write here: {error.strerror}", where=Where(str(FOLDER)), hint="change folder") from error
    try:
        _await_ready(process)
        connection = connection_from(settings, FOLDER)
        asyncio.run(_apply(connection, objects, settings))
    except BaseException:
        process.terminate()
        process.wait()
        raise
    connection.write(FOLDER / CONNECTION_FILE)
    return connection


def take_down() -> str:
    """Stops the process that ``up`` recorded, and only if it is still that one. Says what it did."""
    pid = _our_process()
    (FOLDER / CONNECTION_FILE).unlink(missing_ok=True)
    if pid is None:
        return "no cluster of ours is up in this folder"
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + 10
    while _our_process() == pid:
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    (FOLDER / PROCESS_FILE).unlink(missing_ok=True)
    return f"stopped the cluster (process {pid})"


def _start(settings: HarnessSettings, seed: int, ttl_s: float) -> subprocess.Popen[bytes]:
    (FOLDER / "world.json").write_text(world_config(settings, seed).to_json())
    (FOLDER / "world-ready.json").unlink(missing_ok=True)
    argv = [sys.executable, "-m", "fakes.world", "--config", str(FOLDER / "world.json")]
    argv += ["--ready", str(FOLDER / "world-ready.json"), "--ttl-s", str(ttl_s)]
    with (FOLDER / "world.log").open("ab") as log:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    (FOLDER / PROCESS_FILE).write_text(json.dumps({"pid": process.pid, "started": _start_ticks(process.pid)}))
    return process


def _await_ready(process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while not (FOLDER / "world-ready.json").exists():
        if process.poll() is not None or time.monotonic() > deadline:
            raise TargetError("the embedded cluster did not come up", hint=f"its log: {FOLDER / 'world.log'}")
        time.sleep(0.05)


async def _apply(connection: Connection, objects: list, settings: HarnessSettings) -> None:  # type: ignore[type-arg]
    async with HttpKube(connection.kubeconfig) as kube:
        await apply(kube, objects)
        if objects:
            await wait_until_available(
                kube, settings.workload.namespace, settings.workload.selector, AVAILABLE_TIMEOUT_S
            )


def _our_process() -> int | None:
    """The pid that ``up`` recorded, if that very process still runs (a reused pid has another start time)."""
    try:
        recorded = json.loads((FOLDER / PROCESS_FILE).read_text())
        pid, started = int(recorded["pid"]), recorded["started"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return pid if started is not None and _start_ticks(pid) == started else None


def _start_ticks(pid: int) -> int | None:
    """Field 22 of /proc/<pid>/stat; None when there is no such process or it is a zombie."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if after_name[0] == "Z" else int(after_name[19])
