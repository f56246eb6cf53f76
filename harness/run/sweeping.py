"""Finds what dead runs left changed, and heals it: ``gpu-harness sweep``. Idempotent.

It refuses a run that is still alive, and a cluster that is not the one the run changed. What cannot be healed is named,
with why and with the command by which a person undoes it.
"""

from __future__ import annotations

import asyncio
import enum
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from harness.clock import RunClock, monotonic_ns
from harness.errors import ExitCode, HarnessError
from harness.faults.cluster_journal import KEPT_FILE
from harness.faults.guards import STARTED_BY_US
from harness.faults.heal import IN_FLIGHT_S, heal_all
from harness.faults.undo import UNDO_FILE, ResumeProcess, UndoEntry, UndoJournal, replay
from harness.faults.undoing import by_hand
from harness.kube.port import ApiError
from harness.processes.lock import is_alive
from harness.run.lease import LEASE_FILE, NAME, give_back
from harness.targets.base import CONNECTION_FILE, Connection

CONNECT_WITHIN_S = 3.0
NOTES = (LEASE_FILE, KEPT_FILE)
"""What a run notes down of what it has in the cluster beside its changes."""


class Found(enum.StrEnum):
    """What became of one run's changes."""

    HEALED = "healed"
    PENDING = "pending"
    """Listed only; nothing was tried."""
    ALIVE = "alive"
    """Its process still runs and heals by itself."""
    LEFT = "left"


@dataclass(frozen=True, slots=True)
class Leftover:
    """One run with changes that nobody had undone: its folder, or its journal in the cluster. ``lines`` say which, what
    was done, and what stands."""

    where: str
    found: Found
    lines: tuple[str, ...]

    @property
    def clean(self) -> bool:
        return self.found in (Found.HEALED, Found.ALIVE)


def find_runs(roots: Sequence[Path]) -> Iterator[Path]:
    """Folders under the roots whose journal has something pending, or lines that nobody can read, or that still have
    their lease or their journal in the cluster."""
    seen: set[Path] = set()
    for root in roots:
        kept = (file for name in (UNDO_FILE, *NOTES) for file in root.rglob(name)) if root.is_dir() else ()
        for file in sorted(kept):
            folder = file.parent.resolve()
            if folder in seen:
                continue
            seen.add(folder)
            found = replay(file.with_name(UNDO_FILE))
            if found.pending or found.damaged or any(file.with_name(note).exists() for note in NOTES):
                yield file.parent


def sweep(run_dirs: Sequence[Path], *, heal: bool, say: Callable[[str], None]) -> ExitCode:
    """All of them, one after another. FAIL where something stands, or would without ``heal``."""
    if not run_dirs:
        say("nothing is left: every change of every run found here has been undone")
    return tell([_swept(run_dir, heal=heal) for run_dir in run_dirs], say)


def _swept(run_dir: Path, *, heal: bool) -> Leftover:
    """What is wrong with one run's folder must not keep the others from being healed."""
    try:
        return asyncio.run(sweep_one(run_dir, heal=heal))
    except (HarnessError, ApiError, OSError) as error:
        return Leftover(str(run_dir), Found.LEFT, (f"{type(error).__name__}: {error}",))


def tell(leftovers: Iterable[Leftover], say: Callable[[str], None]) -> ExitCode:
    clean = True
    for leftover in leftovers:
        clean = clean and leftover.clean
        say(f"{leftover.where}: {leftover.found}")
        for line in leftover.lines:
            say(f"  {line}")
    return ExitCode.PASS if clean else ExitCode.FAIL


async def sweep_one(run_dir: Path, *, heal: bool) -> Leftover:
    """One run's leftovers, healed unless only to be listed."""
    journal = replay(run_dir / UNDO_FILE)
    pending = tuple(_said(entry) for entry in journal.pending) + journal.damaged
    if (run_dir / LEASE_FILE).exists():
        pending += ("it holds the cluster's lease, which keeps other runs away",)
    if (run_dir / KEPT_FILE).exists():
        pending += ("its undo journal lies in the cluster, too",)
    if is_alive(run_dir):
        return Leftover(str(run_dir), Found.ALIVE, ("its process is still running, and heals by itself",))
    if not heal:
        return Leftover(str(run_dir), Found.PENDING, pending)
    try:
        connection = _connection_of(run_dir)
    except HarnessError as error:
        return Leftover(str(run_dir), Found.LEFT, (f"nobody knows which cluster it changed: {error}", *pending))
    if connection.target in STARTED_BY_US and connection.host != socket.gethostname():
        where = f"its cluster is on {connection.host}: sweep there; where that is no more, delete this folder"
        return Leftover(str(run_dir), Found.LEFT, (where, *pending))
    gone = await _why_gone(connection)
    if gone is None:
        why_not = await _another_cluster(connection)
        if why_not is not None and connection.target in STARTED_BY_US:
            gone = why_not
        elif why_not is not None:
            return Leftover(str(run_dir), Found.LEFT, (f"refused: {why_not}", *pending))
    if gone is not None:
        _close_with_the_cluster(run_dir, connection, gone)
    report = await heal_all(run_dir, connection, in_flight_s=IN_FLIGHT_S)
    left = report.left + report.errors + await _give_back_lease(run_dir, connection, gone)
    done = tuple(f"undone: {line}" for line in report.undone)
    return Leftover(str(run_dir), Found.LEFT if left else Found.HEALED, (*left, *done))


def _said(entry: UndoEntry) -> str:
    return f"{entry}; by hand: {by_hand(entry.undo)}"


def _connection_of(run_dir: Path) -> Connection:
    """A run has its own; one of plain ``chaos run`` lies beside the connection that it used."""
    own = run_dir / CONNECTION_FILE
    return Connection.read(own if own.exists() else run_dir.parent / CONNECTION_FILE)


async def _why_gone(connection: Connection) -> str | None:
    """Why there is nothing left that could be changed back: a cluster of ours that has ended took all with it.

    Only refused connections say so. A server that hangs may come back, and an API server
    that a fault stopped is started again by those who still answer beside it.
    """
    if connection.target not in STARTED_BY_US:
        return None
    places = [_address(url) for url in (connection.control_url, connection.stack_url) if url]
    if connection.kubeconfig.exists():
        places.append(_api_address(connection.kubeconfig))
    if not all(place is not None and _refuses(place) for place in places):
        return None
    return "its cluster has ended, and all that was in it"


def _refuses(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, CONNECT_WITHIN_S).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return False


def _api_address(kubeconfig: Path) -> tuple[str, int] | None:
    try:
        return _address(str(yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]["server"]))
    except (OSError, ValueError, yaml.YAMLError, KeyError, IndexError, TypeError):
        return None


def _address(url: str) -> tuple[str, int] | None:
    try:
        server = urlsplit(url)
        port = server.port or (443 if server.scheme == "https" else 80)
    except ValueError:
        return None
    return (server.hostname, port) if server.hostname else None


async def _another_cluster(connection: Connection) -> str | None:
    """Why what answers is not what the run changed, None where it is, or where nobody answers."""
    if not connection.fingerprint:
        return None
    try:
        async with connection.kube() as kube:
            found = await kube.fingerprint()
    except (HarnessError, ApiError, OSError):
        return None
    if found == connection.fingerprint:
        return None
    return f"another cluster answers there (kube-system has uid {found}, the run's had {connection.fingerprint})"


async def _give_back_lease(run_dir: Path, connection: Connection, gone: str | None) -> tuple[str, ...]:
    """What kept it from being given back; a lease in a cluster that has ended ended with it."""
    if gone is not None:
        (run_dir / LEASE_FILE).unlink(missing_ok=True)
    if not (run_dir / LEASE_FILE).exists():
        return ()
    try:
        async with connection.kube() as kube:
            await give_back(kube, run_dir)
    except (HarnessError, ApiError, OSError) as error:
        return (
            f"the lease was not given back: {error}; by hand: kubectl delete lease {NAME} -n {connection.namespace}",
        )
    return ()


def _close_with_the_cluster(run_dir: Path, connection: Connection, why: str) -> None:
    """Closes what was changed in the cluster. A stopped process of this machine is no part of it, and stays open."""
    (run_dir / KEPT_FILE).unlink(missing_ok=True)
    journal = UndoJournal(run_dir, RunClock(monotonic_ns(), connection.time_scale))
    for entry in journal.replay().pending:
        if entry.undo is not None and not isinstance(entry.undo, ResumeProcess):
            journal.undone(entry.seq, why)


def default_roots(reports: Path) -> list[Path]:
    """Where runs of this folder lie: reports, and what plain ``chaos run`` made beside the cluster of ``up``."""
    return [reports, Path(".gpu-harness")]
