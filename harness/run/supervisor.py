"""One run, from target up to target down: phases and processes, and an end that always heals.

The supervisor never judges. It leaves a run folder behind from which ``harness.run.judging`` (and anybody, later,
offline) makes the verdict.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import traceback
from collections.abc import Awaitable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from types import FrameType
from typing import Protocol, TypeVar

from harness.clock import NS_PER_S, START_NS_ENV, RunClock, monotonic_ns
from harness.errors import HarnessError
from harness.faults.heal import IN_FLIGHT_S, heal_all
from harness.history.phases import compute_phases
from harness.history.writer import HistoryWriter
from harness.kube.port import ApiError
from harness.plan.plan import Plan
from harness.processes.children import LAST_LINES, Child, spawn
from harness.run.allowing import check_allowed
from harness.run.chaos.command import chaos_command, read_journal
from harness.run.ending import write_ending
from harness.run.lease import RunLease, holder_of
from harness.run.load_processes import LoadProcesses
from harness.run.progress import Progress, Stopped
from harness.run.record.beside import recorded_beside
from harness.run.record.recorder import Recorder
from harness.run.run_queue import RunQueueWatch
from harness.run.rundir import RunDir
from harness.run.stopping import StopConditions
from harness.run.tail import FaultTail, LineTail
from harness.run.view import Snapshot, View
from harness.run.watchdog import Watchdog
from harness.signals import stop_signals
from harness.spec.experiment import Experiment
from harness.spec.loadprofile import LoadProfile
from harness.targets.base import CONNECTION_ENV, Connection, Target

READY_S = 60
"""Clock seconds for Locust and Chaos Toolkit to import and say that they are ready."""
LOAD_STOP_S = 2
CHAOS_STOP_S = 15
"""Rollbacks run after the one SIGTERM; this is how long they may take before it is killed (our own heal follows)."""
TICK_S = 0.2


T = TypeVar("T")


class Supervisor:
    def __init__(
        self,
        experiment: Experiment,
        profile: LoadProfile,
        plan: Plan,
        target: Target,
        run_dir: RunDir,
        view: View,
        command: str,
        spec_path: str,
    ) -> None:
        self._spec_path = spec_path
        self._experiment = experiment
        self._settings = experiment.settings
        self._profile = profile
        self._plan = plan
        self._target = target
        self._dir = run_dir
        self._view = view
        self._command = command
        self._started_utc = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self._clock = RunClock(monotonic_ns(), self._settings.time_scale)
        self._progress = Progress()
        self._stop = asyncio.Event()
        self._stop_reason = ""
        self._load = LoadProcesses(run_dir, self._settings.workload, profile.send, plan.seed)
        self._stop_conditions = StopConditions(self._settings.guards.stop_when, plan.targets)
        self._chaos: Child | None = None
        self._lease_lost: asyncio.Task[str] | None = None
        self._load_tail = self._load.tail
        self._fault_tail = FaultTail(run_dir.faults)

    @property
    def progress(self) -> Progress:
        return self._progress

    @property
    def stop_asked(self) -> bool:
        return self._stop.is_set()

    @property
    def stop_reason(self) -> str:
        return self._stop_reason

    def ask_to_stop(self, number: signal.Signals) -> None:
        """From a signal handler of the event loop. The run ends healed and unknown."""
        self._stop_reason = f"interrupted by {number.name}"
        self._stop.set()

    async def run(self) -> Progress:
        """Never raises for anything that happens to the run itself; the history is kept in every case."""
        writer = HistoryWriter(self._dir.history)
        watchdog = Watchdog(self._clock, lambda t_ns, s: writer.samples.add(t_ns, "machine", "stall_s", s))
        run_queue = RunQueueWatch(self._clock, partial(_add_wait, writer))
        try:
            watchdog.start()
            run_queue.start()
            await self._course(writer)
        except Stopped as stopped:
            self._ended(stopped.ended, stopped.detail, stopped.lines)
        except HarnessError as error:
            self._ended("interrupted" if self._stop.is_set() else "error", self._stop_reason or str(error))
        except Exception as error:
            await self._unforeseen(error)
        finally:
            # Nothing is timed any more, and to take a cluster away may keep the machine busy.
            watchdog.stop()
            run_queue.stop()
            await self._target.down()
            if watchdog.failure is not None:
                self._ended("error", f"stalls of the machine could not be recorded: {watchdog.failure.strerror}")
            self._finish(writer)
        return self._progress

    async def _course(self, writer: HistoryWriter) -> None:
        self._view.say(f"bringing up the target {self._target.name}")
        connection = await self._or_stop(self._target.up())
        async with connection.kube() as kube:
            connection = replace(connection, fingerprint=await self._or_stop(kube.fingerprint()))
            connection.write(self._dir.connection)
            await self._or_stop(check_allowed(kube, self._experiment))
            lease = RunLease(kube, connection.namespace, holder_of(self._dir.path), run_dir=self._dir.path)
            await self._or_stop(lease.acquire())
            self._lease_lost = asyncio.create_task(lease.keep())
            recorder = Recorder(
                kube, self._clock, writer, connection, self._settings.workload, more=recorded_beside(self._experiment)
            )
            try:
                await self._or_stop(recorder.start())
                self._view.say("the workload is up, the recorder sees it")
                await self._start_load(connection)
                await self._start_chaos(connection)
                await self._await_ready()
                self._stop_conditions.begin(recorder.state.nodes_ready_by_name())
                self._go(writer)
                await self._watch(recorder)
            except Stopped as stopped:  # dated now: what happens from here on is our own stopping
                writer.mark(self._clock.now_ns(), stopped.ended, detail=stopped.detail)
                raise
            finally:
                await self._stop_children()
                await self._heal(connection)
                await recorder.stop()
                self._lease_lost.cancel()
                with contextlib.suppress(ApiError, OSError):  # the cluster may be gone by now
                    await lease.release()

    # -- starting

    async def _start_load(self, connection: Connection) -> None:
        settings = self._load.write_settings(connection.service_url, self._clock.start_ns)
        await self._or_stop(self._load.start(settings, self._env(connection)))

    async def _start_chaos(self, connection: Connection) -> None:
        argv = chaos_command(self._experiment.path, self._dir.chaos_journal)
        env = self._env(connection)
        self._chaos = await self._or_stop(spawn("Chaos Toolkit", argv, env=env, log=self._dir.log("chaos")))

    async def _await_ready(self) -> None:
        """Both have imported what they need and wait for the go, so that neither misses the beginning."""
        self._write_processes()
        marks = LineTail(self._dir.marks)
        chaos_ready = False
        deadline = asyncio.get_running_loop().time() + READY_S
        while not (self._load_tail.ready and chaos_ready):
            self._check_alive()
            if asyncio.get_running_loop().time() > deadline:
                late = self._chaos if self._load_tail.ready else self._load.first
                assert late is not None
                raise self._child_failed(late, f"{late.name} was not ready after {READY_S} s")
            await self._or_stop(asyncio.sleep(0.02))
            self._load_tail.update()
            chaos_ready |= any(mark.get("name") == "chaos_ready" for mark in marks.lines())

    def _go(self, writer: HistoryWriter) -> None:
        """Scenario time 0: load and chaos read the same moment from the same file."""
        self._progress.load_start_ns = self._clock.now_ns() + NS_PER_S // 5
        writer.mark(self._progress.load_start_ns, "load_start")
        for t_ns in self._plan.schedule.load_steps_ns():
            writer.mark(self._progress.load_start_ns + t_ns, "load_step")
        go = self._dir.path / "load" / "go"
        go.with_suffix(".part").write_text(str(self._progress.load_start_ns))
        go.with_suffix(".part").rename(go)
        self._view.say(f"load and chaos have started: {self._plan.schedule.rows} requests are planned")

    def _env(self, connection: Connection) -> dict[str, str]:
        return {
            "GPU_HARNESS_RUN_DIR": str(self._dir.path.resolve()),
            START_NS_ENV: str(self._clock.start_ns),
            "KUBECONFIG": str(connection.kubeconfig),
            CONNECTION_ENV: str(self._dir.connection.resolve()),
        } | ({"KUBERNETES_CONTEXT": connection.context} if connection.context else {})  # for actions of others

    def _write_processes(self) -> None:
        pids = self._load.pids() | ({"chaos": self._chaos.pid} if self._chaos is not None else {})
        self._dir.processes.write_text(json.dumps(pids) + "\n")

    # -- while it goes on

    async def _watch(self, recorder: Recorder) -> None:
        """Until load and chaos are both through. Raises Stopped for everything else."""
        assert self._chaos is not None
        duration_ns = round(self._plan.clock_s * NS_PER_S)
        patience_ns = round((self._profile.send.deadline_s + 60) * NS_PER_S)
        last_ns = self._progress.load_start_ns + duration_ns + patience_ns
        while True:
            self._load_tail.update()
            self._tell(recorder, duration_ns)
            self._check_alive()
            nodes = recorder.state.nodes_ready_by_name
            if (why := self._stop_conditions.reason(self._clock.now_ns(), self._load_tail, nodes)) is not None:
                raise Stopped("aborted", f"stopped by its own guards: {why}")
            if self._load.over and not self._progress.load_end_ns:
                self._progress.load_end_ns = self._clock.now_ns()
            if self._load.over and self._chaos.returncode is not None:
                return
            if self._clock.now_ns() > last_ns:
                raise Stopped("aborted", "load or chaos did not end by itself long after its time")
            await self._or_stop(asyncio.sleep(TICK_S))

    def _check_alive(self) -> None:
        """A child that died, chaos that gave up before its time, or another run on this cluster ends the run."""
        if self._lease_lost is not None and self._lease_lost.done():
            raise Stopped("aborted", f"this run no longer has the cluster for itself: {self._lease_lost.result()}")
        if (why := self._target.died()) is not None:
            raise Stopped("child_died", why, _last_lines(self._target))
        if (child := self._load.failed()) is not None:
            raise self._child_failed(child, child.how_it_ended())
        if self._chaos is not None and self._chaos.returncode is not None:
            journal = read_journal(self._dir.chaos_journal)
            if journal is None:
                raise self._child_failed(self._chaos, self._chaos.how_it_ended())
            gave_up = journal.status != "completed" or journal.steady_before is False
            if gave_up and not self._load_tail.finished:
                raise Stopped("aborted", f"Chaos Toolkit stopped: {journal.why}", self._chaos.last_lines())

    def _child_failed(self, child: Child, why: str) -> Stopped:
        return Stopped("child_died", why, child.last_lines())

    def _tell(self, recorder: Recorder, duration_ns: int) -> None:
        now = self._clock.now_ns()
        for event in self._fault_tail.news():
            detail = f": {event.detail}" if event.detail else ""
            self._view.say(f"fault {event.fault_id} {event.stage} {', '.join(event.targets)}{detail}")
        state = recorder.state
        since_ns = now - self._progress.load_start_ns
        self._view.show(
            Snapshot(
                scenario_s=max(0.0, self._clock.scenario_s(since_ns)),
                scenario_s_end=self._clock.scenario_s(duration_ns),
                phase=self._phase_now(now),
                offered_per_s=self._load_tail.sent_per_s(now),
                served_per_s=self._load_tail.served_per_s(now),
                ttft_ms=self._load_tail.ttft_ms(now),
                requests_sent=self._load_tail.sent,
                requests_not_ok=self._load_tail.not_ok,
                replicas=state.replicas_text(),
                nodes=state.nodes_text(),
                gangs=state.gangs_text(),
                waiting=state.waiting,
            )
        )

    def _phase_now(self, now_ns: int) -> str:
        phases = compute_phases(
            self._progress.load_start_ns,
            now_ns + 1,
            self._settings.phases.warm_up_s,
            self._settings.time_scale,
            self._fault_tail.seen,
        )
        return phases[-1].name if phases else ""

    # -- ending

    async def _stop_children(self) -> None:
        """Load first, so that it writes its records; chaos gets exactly one SIGTERM and its rollbacks run."""
        chaos = [self._chaos.stop(CHAOS_STOP_S)] if self._chaos is not None else []
        await asyncio.gather(self._load.stop(LOAD_STOP_S), *chaos)
        if self._progress.load_start_ns and not self._progress.load_end_ns:
            self._progress.load_end_ns = self._clock.now_ns()

    async def _heal(self, connection: Connection) -> None:
        """Our own heal follows whatever became of Chaos Toolkit's rollbacks."""
        try:
            killed = self._chaos is not None and (self._chaos.returncode or 0) < 0
            in_flight_s = IN_FLIGHT_S if killed else 0.0
            report = await heal_all(self._dir.path, connection, clock=self._clock, in_flight_s=in_flight_s)
        except HarnessError as error:
            self._progress.undo_left = (str(error),)
            return
        self._progress.undo_planned = report.planned
        self._progress.undo_left = (*report.left, *report.errors)

    async def _unforeseen(self, error: Exception) -> None:
        """A cluster that died under a call of ours, or else a defect: it, too, must end in a kept history."""
        await asyncio.sleep(TICK_S)  # the news of a process's end may come after that of its connections
        if (why := self._target.died()) is not None:
            self._ended("child_died", why, _last_lines(self._target))
            return
        if isinstance(error, ApiError | ConnectionError):
            self._ended("error", f"the cluster did not do what it was asked: {error}")
            return
        log = self._dir.log("supervisor")
        log.write_text("".join(traceback.format_exception(error)))
        self._ended("error", f"a defect of the harness: {type(error).__name__}: {error} (see {log})")

    def _ended(self, ended: str, detail: str, lines: list[str] | None = None) -> None:
        self._progress.ended, self._progress.ended_detail = ended, detail
        self._progress.lines = lines or []

    def _finish(self, writer: HistoryWriter) -> None:
        write_ending(
            writer,
            self._progress,
            experiment=self._experiment,
            profile=self._profile,
            plan=self._plan,
            target=self._target,
            run_dir=self._dir,
            spec_path=self._spec_path,
            command=self._command,
            started_utc=self._started_utc,
        )

    async def _or_stop(self, work: Awaitable[T]) -> T:
        """``work``, unless the run is asked to stop meanwhile: then Stopped, and the work is cancelled."""
        task = asyncio.ensure_future(work)
        stop = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
            if self._stop.is_set():
                raise Stopped("interrupted", self._stop_reason)
            return task.result()
        finally:
            stop.cancel()
            if not task.done():
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, HarnessError):
                    await task


def _last_lines(target: Target) -> list[str]:
    try:
        return target.log.read_text(errors="replace").splitlines()[-LAST_LINES:]
    except OSError:
        return []


class Stoppable(Protocol):
    def ask_to_stop(self, number: signal.Signals) -> None: ...


def stop_on_signals(run: Stoppable) -> None:
    """SIGINT, SIGTERM and SIGHUP ask the run to stop; as often as they come, they ask the same. Not by the loop's own
    handlers: when those are removed there is a moment in which a signal kills. ``handlers_kept`` gives them back."""
    loop = asyncio.get_running_loop()

    def ask(number: int, frame: FrameType | None) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(run.ask_to_stop, signal.Signals(number))

    for stop in stop_signals():
        signal.signal(stop, ask)


def _add_wait(writer: HistoryWriter, t_ns: int, ratio: float, process: str) -> None:
    writer.samples.add(t_ns, "machine", "run_queue_wait_ratio", ratio, {"process": process})
