"""One run in virtual time, from the first node to the end that always heals. Its folder is that of a real run."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import traceback
from collections.abc import Awaitable, Coroutine
from datetime import UTC, datetime
from typing import Any, TypeVar

from fakes.memory import collect_seldom
from harness.clock import NS_PER_S
from harness.errors import HarnessError
from harness.faults.fidelity import VIRTUAL
from harness.faults.log import FaultLog
from harness.faults.port import Ground, Objects
from harness.faults.undo import UndoJournal
from harness.history.writer import HistoryWriter
from harness.run.ending import write_ending
from harness.run.load.limits import SendLimits
from harness.run.load.prompts import Bodies
from harness.run.load.records import Records
from harness.run.load.settings import read_arrivals
from harness.run.preparing import Prepared
from harness.run.progress import Progress, Stopped
from harness.run.record.recorder import Recorder
from harness.run.rundir import RunDir
from harness.run.stopping import StopConditions
from harness.run.view import View
from harness.run.virtual.cluster import Cluster, GatewayText, VirtualTarget
from harness.run.virtual.director import Director
from harness.run.virtual.load import VirtualLoad
from harness.run.virtual.loop import VirtualClock, VirtualLoop
from harness.run.virtual.script import Script
from harness.targets.embedded import AVAILABLE_TIMEOUT_S
from harness.targets.manifests import apply, read_manifests, wait_until_available
from harness.targets.wanted import world_config

T = TypeVar("T")
AVAILABLE_SCENARIO_S = 1800.0
GUARD_EVERY_S = 0.5
"""Time costs nothing here, so the first replicas may take what they take in reality."""


class VirtualRun:
    """``run`` must be called on a ``VirtualLoop``, once."""

    def __init__(
        self, prepared: Prepared, script: Script, run_dir: RunDir, view: View, command: str, spec_path: str
    ) -> None:
        self._prepared = prepared
        self._settings = prepared.experiment.settings
        self._script = script
        self._dir = run_dir
        self._view = view
        self._command = command
        self._spec_path = spec_path
        self._started_utc = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self._progress = Progress()
        self._stop = asyncio.Event()
        self._stop_reason = ""
        self.simulated_s = 0.0
        """Clock seconds that passed in the world."""

    @property
    def stop_asked(self) -> bool:
        return self._stop.is_set()

    @property
    def stop_reason(self) -> str:
        return self._stop_reason

    def ask_to_stop(self, number: signal.Signals) -> None:
        """The run ends healed and unknown."""
        self._stop_reason = f"interrupted by {number.name}"
        self._stop.set()

    async def run(self) -> Progress:
        """Never raises for anything that happens to the run itself; the history is kept in every case."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        collect_seldom()
        clock = VirtualClock(loop, self._settings.time_scale)
        writer = HistoryWriter(self._dir.history)
        writer.samples.add(clock.now_ns(), "machine", "stall_s", 0.0)  # time leaps only: no machine can stall it
        try:
            await self._course(writer, clock)
        except Stopped as stopped:
            self._ended(stopped.ended, stopped.detail)
        except HarnessError as error:
            self._ended("error", str(error))
        except Exception as error:
            file = self._dir.log("virtual")
            file.write_text("".join(traceback.format_exception(error)))
            self._ended("error", f"a defect of the harness: {type(error).__name__}: {error} (see {file})")
        finally:
            self.simulated_s = loop.time()
            self._finish(writer)
        return self._progress

    async def _course(self, writer: HistoryWriter, clock: VirtualClock) -> None:
        experiment, workload = self._prepared.experiment, self._settings.workload
        cluster = Cluster(world_config(experiment, self._prepared.plan.seed), self._dir.ledger)
        world = asyncio.create_task(cluster.world.run(), name="world")
        try:
            self._view.say("bringing up the embedded world in this process")
            kube = cluster.kube()
            await self._unless_ended(world, apply(kube, read_manifests(experiment.manifest_files)))
            patience_s = max(AVAILABLE_TIMEOUT_S, clock.clock_s(AVAILABLE_SCENARIO_S))
            waiting = wait_until_available(kube, workload.namespace, workload.selector, patience_s)
            await self._unless_ended(world, waiting)
            recorder = Recorder(
                cluster.kube("recorder"), clock, writer, None, workload,
                raw_api=cluster.raw_api(), gateway=GatewayText(cluster.entry), wall=cluster.world.wall.now,
            )  # fmt: skip
            try:
                await self._unless_ended(world, recorder.start())
                await self._experiment(writer, clock, cluster, world, recorder)
            finally:
                await recorder.stop()
        finally:
            world.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await world
            cluster.close()

    async def _experiment(
        self,
        writer: HistoryWriter,
        clock: VirtualClock,
        cluster: Cluster,
        world: asyncio.Task[None],
        recorder: Recorder,
    ) -> None:
        """Load and method side by side, until both are through; then heal, whatever became of them."""
        load = self._load(cluster, clock)
        director = self._director(cluster, clock, load)
        self._progress.load_start_ns = clock.now_ns() + NS_PER_S // 5
        writer.mark(self._progress.load_start_ns, "load_start")
        for t_ns in self._prepared.plan.schedule.load_steps_ns():
            writer.mark(self._progress.load_start_ns + t_ns, "load_step")
        self._view.say(f"the load has started: {self._prepared.plan.schedule.rows} requests are planned")
        sending = asyncio.create_task(self._send(load, clock), name="load")
        method = asyncio.create_task(director.run(self._progress.load_start_ns), name="method")
        try:
            await self._unless_ended(world, self._guarded(_both(sending, method), recorder, load, clock))
        except Stopped as stopped:  # dated now: what happens from here on is our own stopping
            writer.mark(clock.now_ns(), stopped.ended, detail=stopped.detail)
            raise
        finally:
            for task in (method, sending):
                task.cancel()
            await asyncio.gather(method, sending, return_exceptions=True)
            load.stop("the load was told to stop")
            load.close()
            self._progress.load_end_ns = self._progress.load_end_ns or clock.now_ns()
            report = await director.heal()
            self._progress.undo_planned = report.planned
            self._progress.undo_left = (*report.left, *report.errors)

    async def _send(self, load: VirtualLoad, clock: VirtualClock) -> None:
        await load.run(self._progress.load_start_ns)
        self._progress.load_end_ns = clock.now_ns()

    def _load(self, cluster: Cluster, clock: VirtualClock) -> VirtualLoad:
        seed, send = self._prepared.plan.seed, self._prepared.profile.send
        limits = SendLimits(send.connect_timeout_s, send.first_token_timeout_s, send.stall_timeout_s, send.deadline_s)
        return VirtualLoad(
            read_arrivals(self._dir.schedule),
            cluster.entry,
            Bodies(self._settings.workload.model, seed),
            Records(self._dir.records),
            clock,
            limits,
            seed,
        )

    def _director(self, cluster: Cluster, clock: VirtualClock, load: VirtualLoad) -> Director:
        plan, workload = self._prepared.plan, self._settings.workload
        ground = Ground(
            target=VIRTUAL,
            namespace=workload.namespace,
            kube=cluster.kube(),
            clock=clock,
            undo=UndoJournal(self._dir.path, clock),
            run_dir=self._dir.path,
            selector=workload.selector,
            world=cluster.control,
            senses=cluster.senses,
            load=load,
            manifest=self._manifest,
            label=f"virtual-{plan.seed}",
        )
        return Director(
            self._script,
            ground,
            FaultLog(self._dir.path, clock),
            clock,
            seed=plan.seed,
            planned={fault.fault_id: fault.targets for fault in plan.faults},
            recovery_s=self._settings.phases.recovery_s,
            say=self._view.say,
            load_finished=lambda: load.finished,
        )

    def _manifest(self, name: str) -> Objects:
        return tuple(read_manifests([self._prepared.experiment.action_manifests[name]]))

    async def _guarded(
        self, work: Coroutine[Any, Any, None], recorder: Recorder, load: VirtualLoad, clock: VirtualClock
    ) -> None:
        """Breaks the work off where the experiment's own guards say so."""
        conditions = StopConditions(self._settings.guards.stop_when, self._prepared.plan.targets)
        conditions.begin(recorder.state.nodes_ready_by_name())
        working = asyncio.create_task(work, name="load and method")
        try:
            while not working.done():
                await asyncio.wait({working}, timeout=GUARD_EVERY_S)
                why = conditions.reason(clock.now_ns(), load, recorder.state.nodes_ready_by_name)
                if why is not None and not working.done():
                    raise Stopped("aborted", f"stopped by its own guards: {why}")
            await working
        finally:
            working.cancel()

    async def _unless_ended(self, world: asyncio.Task[None], work: Awaitable[T]) -> T:
        """``work``, unless the world ends or the run is asked to stop meanwhile."""
        task = asyncio.ensure_future(work)
        stop = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait([task, stop, world], return_when=asyncio.FIRST_COMPLETED)
            if self._stop.is_set():
                raise Stopped("interrupted", self._stop_reason)
            if world.done():
                world.result()  # a controller that raised is a defect, and shown as one
                raise Stopped("child_died", "the world has ended")
            return task.result()
        finally:
            stop.cancel()
            task.cancel()

    def _ended(self, ended: str, detail: str) -> None:
        self._progress.ended, self._progress.ended_detail = ended, detail

    def _finish(self, writer: HistoryWriter) -> None:
        write_ending(
            writer,
            self._progress,
            experiment=self._prepared.experiment,
            profile=self._prepared.profile,
            plan=self._prepared.plan,
            target=VirtualTarget(),
            run_dir=self._dir,
            spec_path=self._spec_path,
            command=self._command,
            started_utc=self._started_utc,
        )


async def _both(sending: asyncio.Task[None], method: asyncio.Task[None]) -> None:
    """Until both are through; what either raises ends it at once."""
    await asyncio.gather(sending, method)
