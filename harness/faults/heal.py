"""Undoes what the harness itself did, from the journal, as often as it is asked. It never does the system's work."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from harness.clock import START_NS_ENV, RunClock, monotonic_ns
from harness.errors import HarnessError
from harness.faults.cluster_journal import KEPT_FILE, ClusterJournal, JournalFirstKube, JournalFirstWorld
from harness.faults.fault import Strike, fidelity_on
from harness.faults.life import watch_healing
from harness.faults.log import FaultLog
from harness.faults.port import Clock, Ground, Objects, Patience
from harness.faults.programs import ProgramsWorld
from harness.faults.registry import FAULTS
from harness.faults.senses import HttpSenses
from harness.faults.undo import About, ResumeProcess, UndoEntry, UndoJournal
from harness.faults.undoing import by_hand, undo_change
from harness.faults.world_control import HttpWorldControl, WorldControl
from harness.history.tables import FaultStage
from harness.kube.port import ApiError, Kube

if TYPE_CHECKING:
    from harness.targets.base import Connection

HEAL_WITHIN_S = 20.0
WATCH_LEAVES_S = 5.0
"""Clock seconds of all the healing that are not spent on looking whether it worked."""
SETTLE_WITHIN_S = 3.0
IN_FLIGHT_S = 2.0
"""Clock seconds after which no request of a process that was killed is still on its way to a server. A change that
arrives after its undo would stand for ever: seen where the server was busy when its client died."""
ONE_WITHIN_S = 8.0
"""Clock seconds for one undo, so that a server that hangs does not use up the time of the others."""


@dataclass(frozen=True, slots=True)
class HealReport:
    """The whole journal's state after healing, so a second heal reports the same. ``left`` is what still stands, with
    the command by which a person undoes it."""

    planned: int
    undone: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        return not self.left and not self.errors


@asynccontextmanager
async def open_ground(
    run_dir: Path,
    connection: Connection,
    clock: Clock,
    patience: Patience | None = None,
    *,
    selector: str = "",
    manifest: Callable[[str], Objects] = lambda name: (),
    healing: bool = False,
) -> AsyncIterator[Ground]:
    """The ground of a run over HTTP, closed again on the way out. Unless it is for ``healing``, no change is made on it
    before its undo stands in the cluster, where the journal is kept there: an undo must not wait for that."""
    async with AsyncExitStack() as stack:
        # Opened by its first call, so that what needs no cluster works, and heals, without one.
        http = connection.kube()
        stack.push_async_callback(http.close)
        kube: Kube = http
        url = connection.control_url
        world: WorldControl | None = await stack.enter_async_context(HttpWorldControl(url)) if url else None
        if world is not None and connection.stack_url is not None:
            world = ProgramsWorld(world, connection.stack_url)
        senses = await stack.enter_async_context(HttpSenses(connection.service_url, lambda: http))
        if connection.undo_in_cluster and not healing:
            kept = ClusterJournal(http, connection, run_dir)
            kube = JournalFirstKube(http, kept)
            world = JournalFirstWorld(world, kept) if world is not None else None
        yield Ground(
            target=connection.target,
            namespace=connection.namespace,
            kube=kube,
            clock=clock,
            undo=UndoJournal(run_dir, clock),
            run_dir=run_dir,
            selector=selector,
            world=world,
            senses=senses,
            manifest=manifest,
            stack=connection.stack,
            patience=patience or Patience(),
        )


async def heal_all(
    run_dir: Path,
    connection: Connection,
    *,
    clock: RunClock | None = None,
    within_s: float = HEAL_WITHIN_S,
    in_flight_s: float = 0.0,
) -> HealReport:
    """Heals everything the run's journal holds. Idempotent; raises nothing that a report can say. ``in_flight_s`` as
    for ``heal_pending``."""
    start_ns = os.environ.get(START_NS_ENV)
    in_run = clock is not None or start_ns is not None
    clock = clock or RunClock(int(start_ns) if start_ns else monotonic_ns(), connection.time_scale)
    journal, url = UndoJournal(run_dir, clock), connection.control_url
    if not journal.replay().pending:
        return await _settle(_report(journal, (), url), run_dir, connection)
    # Without the run's own clock (a sweep long after it) no line goes into its history: its times would be wrong.
    log = FaultLog(run_dir, clock) if in_run else None
    try:
        async with asyncio.timeout(within_s), open_ground(run_dir, connection, clock, healing=True) as ground:
            watch_s = max(0.0, within_s - WATCH_LEAVES_S)
            report = await heal_pending(ground, log, watch_s, in_flight_s)
            report = replace(report, left=_report(journal, (), url).left)
    except TimeoutError:
        report = _report(journal, (f"healing was not over after {within_s:g} s",), url)
    except (HarnessError, OSError) as error:
        report = _report(journal, (f"{type(error).__name__}: {error}",), url)
    return await _settle(report, run_dir, connection)


async def _settle(report: HealReport, run_dir: Path, connection: Connection) -> HealReport:
    """The journal in the cluster says what this one says, and goes where nothing is left to undo."""
    if not (run_dir / KEPT_FILE).exists():
        return report
    try:
        async with (
            asyncio.timeout(SETTLE_WITHIN_S),
            connection.kube() as kube,
        ):
            kept = ClusterJournal(kube, connection, run_dir)
            await (kept.keep() if report.left else kept.remove())
    except (HarnessError, ApiError, OSError) as error:
        return replace(
            report, errors=(*report.errors, f"the journal in the cluster was not brought up to date: {error}")
        )
    return report


async def heal_pending(
    ground: Ground, log: FaultLog | None, watch_s: float | None = None, in_flight_s: float = 0.0
) -> HealReport:
    """Last change first, but what needs no server before all others. An undo that fails does not keep the rest from
    being tried. Then looks for at most ``watch_s`` clock seconds whether the effects are gone.

    Who made the changes may have been cut off with a request on its way, which a busy server carries out after the undo
    of it. So for ``in_flight_s`` clock seconds no undo counts as done, and then all are done again."""
    errors: list[str] = []
    by_fault: dict[str, list[UndoEntry]] = {}
    for entry in sorted(ground.undo.replay().pending, key=lambda e: (not isinstance(e.undo, ResumeProcess), -e.seq)):
        by_fault.setdefault(entry.fault_id, []).append(entry)
    healed: dict[str, About] = {}
    if in_flight_s and by_fault:
        for entry in chain.from_iterable(by_fault.values()):
            await _undo(ground, entry)
        await asyncio.sleep(in_flight_s)
    for fault_id, entries in by_fault.items():
        _write(ground, log, fault_id, FaultStage.HEALING, ", ".join(e.undo.kind for e in entries if e.undo))
        said = [await _heal_one(ground, entry) for entry in entries]
        failed = [detail for done, detail in said if not done]
        errors += [f"{fault_id}: {detail}" for detail in failed]
        stage = FaultStage.FAILED if failed else FaultStage.HEALED
        _write(ground, log, fault_id, stage, "; ".join(detail for _, detail in said))
        if not failed and entries[0].about is not None:
            healed[fault_id] = entries[0].about
    for fault_id, (watched, detail) in zip(healed, await _watch(ground, healed, watch_s), strict=True):
        if watched is not None:
            _write(ground, log, fault_id, watched, detail)
        if watched is FaultStage.HEAL_NOT_OBSERVED:
            errors.append(f"{fault_id}: {detail}")
    return _report(ground.undo, tuple(errors))


async def _watch(
    ground: Ground, healed: Mapping[str, About], watch_s: float | None
) -> list[tuple[FaultStage | None, str]]:
    async def watch(fault_id: str, about: About) -> tuple[FaultStage | None, str]:
        kind = FAULTS.get(about.fault)
        if kind is None:
            return None, ""
        try:
            fault = kind.model_validate(about.arguments)
        except ValidationError:
            return None, ""  # of another version, which could look; the change is undone all the same
        try:
            return await watch_healing(Strike(fault, ground, fault_id, about.targets), watch_s)
        except Exception as error:  # what was undone is to be told all the same
            said = f"undone, but nobody could look whether the effect is gone: {type(error).__name__}: {error}"
            return FaultStage.HEAL_NOT_OBSERVED, said

    return await asyncio.gather(*(watch(fault_id, about) for fault_id, about in healed.items()))


async def _heal_one(ground: Ground, entry: UndoEntry) -> tuple[bool, str]:
    """Does it, and writes into the journal what became of it."""
    done, detail = await _undo(ground, entry)
    (ground.undo.undone if done else ground.undo.failed)(entry.seq, detail)
    return done, detail


async def _undo(ground: Ground, entry: UndoEntry) -> tuple[bool, str]:
    if entry.undo is None:
        return False, f"its undo cannot be read: {entry.detail}"
    try:
        async with asyncio.timeout(ONE_WITHIN_S):
            return True, await undo_change(ground, entry.undo)
    except Exception as error:  # a defect in the one must not leave all others standing
        return False, f"{entry.undo.kind}: {type(error).__name__}: {error}"


def _write(ground: Ground, log: FaultLog | None, fault_id: str, stage: FaultStage, detail: str) -> None:
    if log is None:
        return
    name = fault_id.rpartition("-")[0]
    fault = FAULTS.get(name)
    log.write(
        fault_id,
        name,
        stage,
        fidelity=fidelity_on(fault, ground.target, ground.stack).value if fault else "",
        detail=detail,
        disruptive=fault.disruptive if fault else True,
    )


def _report(journal: UndoJournal, errors: tuple[str, ...], control_url: str | None = None) -> HealReport:
    replay = journal.replay()
    url = () if control_url is None else (control_url,)
    return HealReport(
        planned=len(replay.entries),
        undone=tuple(f"{e} {e.detail}".strip() for e in replay.entries if e.done),
        left=tuple(f"{e} {e.detail}".strip() + f"; by hand: {by_hand(e.undo, *url)}" for e in replay.pending),
        errors=errors + replay.damaged,
    )
