"""A cluster that outlives the command that started it: ``up`` and ``down``. Its state lies in ``.gpu-harness/``."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from fakes.config import WorldConfig
from harness.errors import BadInput, TargetError, Where
from harness.kube.http import HttpKube
from harness.kube.port import Json, Resource
from harness.spec.experiment import load_experiment
from harness.targets.base import CONNECTION_FILE, Connection
from harness.targets.embedded import (
    AVAILABLE_TIMEOUT_S,
    READY_FILE,
    START_TIMEOUT_S,
    connection_from,
    two_empty_nodes,
    world_config,
)
from harness.targets.manifests import apply, read_manifests, wait_until_available

FOLDER = Path(".gpu-harness")
PROCESS_FILE = "process.json"


def bring_up(experiment: Path | None, *, seed: int, ttl_s: float) -> Connection:
    """Starts the embedded cluster and applies the experiment's manifests. Refuses while one of ours is up here."""
    loaded = load_experiment(experiment) if experiment else None
    config = world_config(loaded, seed) if loaded else two_empty_nodes(seed)
    objects = read_manifests(loaded.manifest_files) if loaded else []
    if (pid := _our_process()) is not None:
        raise BadInput(f"a cluster is up already (process {pid})", where=Where(str(FOLDER)), hint="gpu-harness down")
    try:
        FOLDER.mkdir(exist_ok=True)
        process = _start(config, ttl_s)
    except OSError as error:
        raise BadInput(
            f"cannot write here: {error.strerror}", where=Where(str(FOLDER)), hint="change folder"
        ) from error
    try:
        _await_ready(process)
        connection = connection_from(config, FOLDER)
        asyncio.run(_apply(connection, objects, loaded.settings.workload.selector if loaded else ""))
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


def _start(config: WorldConfig, ttl_s: float) -> subprocess.Popen[bytes]:
    (FOLDER / "world.json").write_text(config.to_json())
    (FOLDER / READY_FILE).unlink(missing_ok=True)
    argv = [sys.executable, "-m", "fakes.world", "--config", str(FOLDER / "world.json")]
    argv += ["--ready", str(FOLDER / READY_FILE), "--ttl-s", str(ttl_s)]
    with (FOLDER / "world.log").open("ab") as log:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    (FOLDER / PROCESS_FILE).write_text(json.dumps({"pid": process.pid, "started": _start_ticks(process.pid)}))
    return process


def _await_ready(process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while not (FOLDER / READY_FILE).exists():
        if process.poll() is not None or time.monotonic() > deadline:
            raise TargetError("the embedded cluster did not come up", hint=f"its log: {FOLDER / 'world.log'}")
        time.sleep(0.05)


async def _apply(connection: Connection, objects: Sequence[tuple[Resource, Json]], selector: str) -> None:
    async with HttpKube(connection.kubeconfig) as kube:
        await apply(kube, objects)
        if selector:
            await wait_until_available(kube, connection.namespace, selector, AVAILABLE_TIMEOUT_S)


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
