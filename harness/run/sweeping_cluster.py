"""Heals from the journals that dead runs left in a cluster, without their folders: ``gpu-harness sweep --target``.

What lies in a cluster can be written by anybody who may write a ConfigMap there, so nothing of it is believed that the
cluster itself does not bear out: it must be of this cluster, objects are deleted only by the run's label, fields are
restored only where the field manager ``gpu-harness`` wrote them, and no address is taken from it.
"""

from __future__ import annotations

import asyncio
import json
import socket
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from harness.clock import RunClock, monotonic_ns
from harness.errors import BadInput, ExitCode, HarnessError, TargetError, Where
from harness.faults.cluster_journal import ABOUT, KEPT_LABEL, KEPT_VALUE, KeptRun
from harness.faults.fidelity import KUBECONFIG
from harness.faults.heal import IN_FLIGHT_S, heal_pending, open_ground
from harness.faults.port import Ground, LoadControl
from harness.faults.undo import UNDO_FILE, Undo, replay
from harness.faults.undoing import by_hand
from harness.kube.http import HttpKube
from harness.kube.port import CONFIG_MAP, NAMESPACE, ApiError, Json, NotFound
from harness.run.lease import NAME, give_back_of, living_holder
from harness.run.sweeping import Found, Leftover, tell
from harness.targets.base import CONNECTION_FILE, Connection
from harness.targets.choosing import TARGETS
from harness.targets.foreign import check_context
from harness.targets.standing import FOLDER

MANAGER = "gpu-harness"
IF_DEAD = f"if it is surely dead: kubectl delete lease {NAME}, and sweep again"
LOOKS_S = 10.0
"""Clock seconds in which the effects should be gone once they are undone."""


def cluster_of(target: str, kubeconfig: Path | None, context: str | None, namespace: str) -> Connection:
    """The cluster of ``up`` in this folder, or the one that a kubeconfig names: then the context must be named, too,
    and be the file's current one, so that nobody heals the cluster that yesterday's shell left there."""
    if target not in (*TARGETS, KUBECONFIG):
        hint = f"there is: {', '.join((*TARGETS, KUBECONFIG))}"
        raise BadInput(f"there is no target {target!r}", where=Where("--target"), hint=hint)
    if kubeconfig is None:
        if target == KUBECONFIG:
            raise BadInput("--target kubeconfig needs --kubeconfig and --context", where=Where("--target"))
        connection = Connection.read(FOLDER / CONNECTION_FILE)
        if connection.target != target:
            raise BadInput(f"the cluster of `up` here is {connection.target}, not {target}", where=Where("--target"))
        return connection
    path, named = check_context(kubeconfig, context)
    return Connection(target, path, "http://127.0.0.1:9", None, namespace, 1.0, context=named)


def sweep_journals(connection: Connection, *, heal: bool, say: Callable[[str], None]) -> ExitCode:
    leftovers = asyncio.run(sweep_cluster(connection, heal=heal))
    if not leftovers:
        say(f"nothing is left: no journal lies in namespace {connection.namespace} of that cluster")
    return tell(leftovers, say)


async def sweep_cluster(connection: Connection, *, heal: bool) -> list[Leftover]:
    """Every journal in the connection's namespace. Raises HarnessError where the cluster cannot be read."""
    async with connection.kube() as kube:
        try:
            fingerprint = await kube.fingerprint()
            await _check_namespace(kube, connection.namespace)
            kept = await kube.list(CONFIG_MAP, connection.namespace, label_selector=f"{KEPT_LABEL}={KEPT_VALUE}")
        except (ApiError, OSError) as error:
            raise TargetError(f"the journals of the cluster cannot be read: {error}") from error
        return [await _sweep_one(kube, connection, fingerprint, item, heal) for item in kept.items]


async def _check_namespace(kube: HttpKube, name: str) -> None:
    """BadInput for one that is not there: a mistyped name has no journal, and nothing would be left, it seems."""
    try:
        await kube.get(NAMESPACE, name)
    except NotFound as error:
        raise BadInput(
            f"there is no namespace {name}", where=Where("--namespace"), hint="of the run's workload"
        ) from error
    except ApiError:
        return  # not ours to read


async def _sweep_one(kube: HttpKube, connection: Connection, fingerprint: str, kept: Json, heal: bool) -> Leftover:
    where = f"ConfigMap/{kept['metadata']['namespace']}/{kept['metadata']['name']}"
    try:
        about = _read_about(kept)
    except ValueError as error:
        return Leftover(where, Found.LEFT, (f"refused: nobody can read whose it is: {error}",))
    said = f"of the run in {about.folder} on {about.host}"
    if about.fingerprint != fingerprint or about.namespace != connection.namespace:
        of = f"the cluster whose kube-system has uid {about.fingerprint}, namespace {about.namespace}"
        return Leftover(where, Found.LEFT, (f"refused: it is {said}, and of {of}, not of this one",))
    with tempfile.TemporaryDirectory(prefix="gpu-harness-sweep-") as folder:
        run_dir = Path(folder)
        if (text := (kept.get("data") or {}).get(UNDO_FILE)) is None:
            return Leftover(
                where, Found.LEFT, (f"{said}, but it holds no {UNDO_FILE}: nobody knows what that changed",)
            )
        (run_dir / UNDO_FILE).write_text(text)
        journal = replay(run_dir / UNDO_FILE)
        pending = tuple(f"{e}; by hand: {by_hand(e.undo)}" for e in journal.pending) + journal.damaged
        try:
            if (holder := await living_holder(kube, connection.namespace, about.folder)) is not None:
                return Leftover(
                    where, Found.ALIVE, (f"{said}, which is at work and heals by itself: {holder}", IF_DEAD)
                )
            if not heal:
                return Leftover(where, Found.PENDING, (said, *pending))
            return await _heal(kube, connection, about, kept, run_dir, Leftover(where, Found.LEFT, (said,)))
        except (HarnessError, ApiError, OSError) as error:
            return Leftover(where, Found.LEFT, (said, f"{type(error).__name__}: {error}", *pending))


async def _heal(
    kube: HttpKube, connection: Connection, about: KeptRun, kept: Json, run_dir: Path, leftover: Leftover
) -> Leftover:
    clock = RunClock(monotonic_ns(), about.time_scale)
    async with open_ground(run_dir, connection, clock, healing=True) as ground:
        # The switches of an emulated world are those of our own connection: no address is taken from the cluster.
        careful = replace(ground, only_of=MANAGER, load=_load_on(about.host, ground))
        report = await heal_pending(careful, None, watch_s=LOOKS_S, in_flight_s=IN_FLIGHT_S)
    if report.left or replay(run_dir / UNDO_FILE).damaged:
        data = {**(kept.get("data") or {}), UNDO_FILE: (run_dir / UNDO_FILE).read_text()}
        await kube.update(CONFIG_MAP, kept | {"data": data})
    else:
        await kube.delete(
            CONFIG_MAP, kept["metadata"]["name"], connection.namespace, uid=kept["metadata"]["uid"]
        )  # fmt: skip
        await give_back_of(kube, connection.namespace, about.folder)
    left = (*report.left, *report.errors)
    done = tuple(f"undone: {line}" for line in report.undone)
    return replace(leftover, found=Found.LEFT if left else Found.HEALED, lines=(*leftover.lines, *left, *done))


def _read_about(kept: Json) -> KeptRun:
    """ValueError for one that no run of ours wrote."""
    try:
        return KeptRun(**json.loads((kept.get("data") or {})[ABOUT]))
    except (KeyError, TypeError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


class _LoadElsewhere:
    """The load generator of a run on another machine: what has its process id here is not it."""

    def __init__(self, host: str) -> None:
        self._host = host

    def resume_undo(self) -> Undo:
        raise self._refusal()

    def pause(self) -> None:
        raise self._refusal()

    def paused(self) -> str | None:
        return None

    def resume(self, undo: Undo) -> str:
        raise self._refusal()

    def _refusal(self) -> TargetError:
        return TargetError(f"the load generator is a process of {self._host}, not of this machine: sweep there")


def _load_on(host: str, ground: Ground) -> LoadControl | None:
    return ground.load if host == socket.gethostname() else _LoadElsewhere(host)
