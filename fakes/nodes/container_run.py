"""One container of a pod on a node: prepare, create, probe, restart, stop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from fakes.config import PlantedBug
from fakes.nodes.container_start import FIRST_BACK_OFF_S, LONGEST_BACK_OFF_S, Preparation, SayEvent
from fakes.nodes.container_status import NEVER_LOCATED, ContainerView, Ended, Role
from fakes.nodes.hooks import HookFailed, run_hook
from fakes.nodes.probes import Probe, Prober, read_probe
from fakes.nodes.runtime import Container
from fakes.nodes.script_container import ScriptContainer
from fakes.nodes.services import NodeServices
from fakes.nodes.shell import Shell
from harness.kube.port import Json

BACK_OFF_FORGOTTEN_S = 600
"""A process that ran this long starts the back-off afresh."""
BACK_OFF_SHOWN_S = 1
"""A container that ended is seen as such for a moment before it is seen to wait."""
GRACE_MIN_S = 2
"""SIGTERM gets at least this long, even where the preStop hook ate all of the grace."""
HAIR_S = 1e-6
"""A timer may fire a hair before its time. Whoever then waited for the rest of it would spin."""
WRONG_PATH = "/no-such-path"
"""What the probe asks for under a planted bug."""
NEVER = "1970-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True)
class PodHooks:
    """What a container needs of its pod: the newest object, and where its own news go."""

    pod: Callable[[], Json]
    pod_ip: Callable[[], str]
    changed: Callable[[], None]
    event: SayEvent
    listens: Callable[[tuple[str, int]], Awaitable[None]]


class ContainerRun:
    """``run`` ends when the container will not run again: its pod is stopped, or its restart policy says so."""

    def __init__(self, node: NodeServices, hooks: PodHooks, view: ContainerView) -> None:
        self.view = view
        self.finished = False
        """It will not run again. Set before the news of its end, so that a pod's last container and its terminal phase
        are one write."""
        self.tried = asyncio.Event()
        """Its first start succeeded or failed: the next container's turn."""
        self.up = asyncio.Event()
        """It has started, in the sense of its startup probe."""
        self._node = node
        self._hooks = hooks
        self._loop = asyncio.get_running_loop()
        self._preparation = Preparation(node, view, hooks.pod, self._cannot_start, hooks.event)
        self._process: Container | None = None
        self._shell: Shell | None = None
        self._probers: list[Prober] = []
        self._wake = asyncio.Event()
        self._stopping = False
        self._sick: Probe | None = None
        self._hook_failed = ""
        self._oom = False
        self._deadline_s = 0.0
        self._back_off_s = 0.0
        self._began_s = 0.0
        self._exit_s: float | None = None

    @property
    def process(self) -> Container | None:
        """What runs now."""
        return self._process

    def stop(self, deadline_s: float) -> None:
        """PreStop hook, SIGTERM, and SIGKILL at ``deadline_s`` of the event loop. Again with an earlier deadline, it
        hurries."""
        self._deadline_s = min(deadline_s, self._deadline_s) if self._stopping else deadline_s
        self._stopping = True
        self._wake.set()

    def kill(self) -> None:
        """The machine has lost its power: no hook, no event."""
        self._stop_probing()
        if self._process is not None:
            self._process.kill()

    def oom_kill(self) -> None:
        """The kernel's killer takes it for its memory limit."""
        if self._process is not None:
            self._oom = True
            self._process.kill()

    async def run(self) -> None:
        try:
            while not self._stopping:
                if not await self._unless_stopped(self._prepare()):
                    break
                await self._run_once()
                if self.finished:
                    return
                await self._back_off()
            self.view.ended = self.view.ended or self.view.last or NEVER_LOCATED
            self._finish()
        finally:
            self._stop_probing()
            self.tried.set()

    async def _prepare(self) -> None:
        await self._preparation.ready()
        timing = self._node.timing
        await asyncio.sleep(timing.draw_s(timing.durations.container_start, self._node.rng))

    def _cannot_start(self) -> None:
        self.tried.set()
        self._hooks.changed()

    async def _run_once(self) -> None:
        view = self.view
        if view.container_id:
            view.restarts += 1
            view.last = view.ended or view.last
        view.container_id = f"containerd://{self._node.rng.getrandbits(256):064x}"
        say = self._node.logs.begin(self._hooks.pod(), view.name)
        self._event("Normal", "Created", "Container created")
        try:
            pod = self._hooks.pod()
            pod = pod | {"status": (pod.get("status") or {}) | {"podIP": self._hooks.pod_ip()}}
            process = await self._node.runtime.create(pod, view.spec, say)
        except OSError as error:
            self._event("Warning", "Failed", f"Error: {error}")
            self._show_ended(128, "StartError", str(error))
            return
        self._process, self._oom, self._sick, self._hook_failed = process, False, None, ""
        self._shell = (
            process.shell if isinstance(process, ScriptContainer) else Shell(self._node.timing, self._get, say)
        )
        if process.address is not None:
            await self._hooks.listens(process.address)
        self._began_s = self._loop.time()
        view.running_since, view.ended = self._node.wall.stamp(), None
        view.started = "startupProbe" not in view.spec
        view.ready = view.started and self._ready_unasked()
        self._event("Normal", "Started", "Container started")
        self._hooks.changed()
        if view.started:
            self.up.set()
        self.tried.set()
        code = await self._until_exit(process)
        self._process = None
        self._node.logs.end(self._hooks.pod(), view.name)
        await self._node.sync.turn()
        reason = "OOMKilled" if self._oom else "Completed" if code == 0 else "Error"
        self._show_ended(code, reason, "")

    def _show_ended(self, code: int, reason: str, message: str) -> None:
        view, now = self.view, self._node.wall.stamp()
        started = (view.running_since or now) if reason != "StartError" else NEVER
        view.ended = Ended(code, reason, message, started, now, view.container_id)
        view.ready = view.started = False
        view.running_since = ""
        self.tried.set()
        self._finish(code)

    def _finish(self, code: int | None = None) -> None:
        self.finished = code is None or self._stopping or not self._restarts(code)
        self._hooks.changed()

    def _ready_unasked(self) -> bool:
        return "readinessProbe" not in self.view.spec or PlantedBug.READY_BEFORE_SERVING in self._node.bugs

    async def _until_exit(self, process: Container) -> int:
        """Readiness is probed to the end, also while the container shuts down; startup and liveness are not."""
        exited = asyncio.ensure_future(process.wait())
        exited.add_done_callback(lambda _: self._wake.set())
        self._start_probing(process)
        try:
            if post_start := (self.view.spec.get("lifecycle") or {}).get("postStart"):
                await self._after_start(post_start, exited)
            while not (exited.done() or self._stopping or self._sick or self._hook_failed):
                self._wake.clear()
                await self._wake.wait()
            if not exited.done():
                await self._shut_down(process, exited)
            return await exited
        finally:
            self._stop_probing()
            exited.cancel()

    async def _after_start(self, hook: Json, exited: asyncio.Future[int]) -> None:
        task = asyncio.ensure_future(self._hook(hook))
        task.add_done_callback(lambda _: self._wake.set())
        try:
            while not (task.done() or exited.done() or self._stopping):
                self._wake.clear()
                await self._wake.wait()
            if task.done() and task.exception() is not None:
                self._event("Warning", "FailedPostStartHook", "PostStartHook failed")
                self._hook_failed = f"Container {self.view.name} FailedPostStartHook"
        finally:
            task.cancel()

    async def _hook(self, hook: Json) -> None:
        assert self._shell is not None and self._process is not None
        await run_hook(hook, self._shell, self._get, self._node.timing)

    async def _get(self, path: str) -> int | None:
        if self._process is None:
            return None
        answer = self._process.probe(path)
        return answer if answer is None or isinstance(answer, int) else await answer

    # Probes.

    def _start_probing(self, process: Container) -> None:
        if startup := self._read("Startup"):
            self._add(startup, process, lambda ok: self._startup_reached(ok, startup, process))
        else:
            self._probe_running(process)

    def _read(self, kind: str) -> Probe | None:
        return read_probe(kind, self.view.spec, self._hooks.pod_ip(), self._node.timing)

    def _add(self, probe: Probe, process: Container, reached: Callable[[bool], None]) -> None:
        assert self._shell is not None
        prober = Prober(
            probe, process, self._shell, lambda ok: self._node.sync.call(lambda: reached(ok)), self._unhealthy
        )
        self._probers.append(prober)
        prober.start()

    def _startup_reached(self, ok: bool, startup: Probe, process: Container) -> None:
        if not ok:
            self._is_sick(startup)
        elif not self.view.started and self._process is process and not self._stopping:
            self._stop_probing()
            self.view.started = True
            self.up.set()
            self._probe_running(process)
            self._hooks.changed()

    def _probe_running(self, process: Container) -> None:
        if liveness := self._read("Liveness"):
            self._add(liveness, process, lambda ok: None if ok else self._is_sick(liveness))
        readiness = self._read("Readiness")
        if readiness is None or self._ready_unasked():
            self._set_ready(True)
        elif PlantedBug.PROBE_NEVER_PASSES not in self._node.bugs or not self._node.machine.provisioned:
            self._add(readiness, process, self._set_ready)
        else:
            self._add(replace(readiness, path=WRONG_PATH), process, self._set_ready)

    def _is_sick(self, probe: Probe) -> None:
        if self._sick is None and not self._stopping:
            self._sick = probe
            self._wake.set()

    def _set_ready(self, ready: bool) -> None:
        if ready is not self.view.ready and self.view.is_running:
            self.view.ready = ready
            self._hooks.changed()

    def _unhealthy(self, message: str) -> None:
        self._event("Warning", "Unhealthy", message)

    def _stop_probing(self) -> None:
        for prober in self._probers:
            prober.stop()
        self._probers.clear()

    # The end of a process.

    async def _shut_down(self, process: Container, exited: asyncio.Future[int]) -> None:
        loop, timing = self._loop, self._node.timing
        self._say_killing()
        if not self._stopping:
            grace_s = self._hooks.pod()["spec"].get("terminationGracePeriodSeconds", 30)
            if self._sick is not None and self._sick.grace_s is not None:
                grace_s = self._sick.grace_s
            self._deadline_s = loop.time() + timing.clock_s(grace_s)
        pre_stop = (self.view.spec.get("lifecycle") or {}).get("preStop")
        if pre_stop and PlantedBug.PRE_STOP_SKIPPED not in self._node.bugs:
            if PlantedBug.SIGTERM_BESIDE_PRE_STOP in self._node.bugs:
                process.terminate()
            await self._before_stop(pre_stop, exited)
        kill_at_least_s = loop.time() + timing.clock_s(GRACE_MIN_S)
        process.terminate()
        if PlantedBug.GRACE_CUT_SHORT in self._node.bugs:
            self._deadline_s = kill_at_least_s
        await self._wait(exited, lambda: max(self._deadline_s, kill_at_least_s))
        if not exited.done():
            process.kill()

    def _say_killing(self) -> None:
        name = self.view.name
        if self._stopping:
            said = f"Stopping container {name}"
        elif self._sick is not None:
            said = f"Container {name} failed {self._sick.kind.lower()} probe, will be restarted"
        else:
            said = "FailedPostStartHook"
        self._event("Normal", "Killing", said)

    async def _before_stop(self, hook: Json, exited: asyncio.Future[int]) -> None:
        task = asyncio.ensure_future(self._hook(hook))
        task.add_done_callback(lambda _: self._wake.set())
        try:
            await self._wait(exited, lambda: self._deadline_s, task)
            failed = isinstance(task.exception(), HookFailed) if task.done() else not exited.done()
            if failed:
                self._event("Warning", "FailedPreStopHook", "PreStopHook failed")
        finally:
            task.cancel()

    async def _wait(
        self, exited: asyncio.Future[int], until_s: Callable[[], float], other: asyncio.Future[Any] | None = None
    ) -> None:
        """Until the process or ``other`` has ended, or a moment that may be brought nearer meanwhile."""
        while not exited.done() and not (other is not None and other.done()):
            left_s = until_s() - self._loop.time()
            if left_s <= HAIR_S:
                return
            await self._woken(left_s)

    def _restarts(self, code: int) -> bool:
        if self.view.role is Role.SIDECAR:
            return True
        policy = self._hooks.pod()["spec"].get("restartPolicy", "Always")
        if self.view.role is Role.INIT:
            return code != 0 and policy != "Never"
        return policy == "Always" or (policy == "OnFailure" and code != 0)

    async def _back_off(self) -> None:
        """The first restart is at once; the next 10 s, 20 s, 40 s … (scenario) after the exit, and up to half as long
        again, when the kubelet looks at the pod. For a container that the kubelet killed itself the exit before that
        one counts, as it knows of no other yet: so it has one restart more for nothing."""
        view, timing, pod = self.view, self._node.timing, self._hooks.pod()
        exit_s, before_s = self._loop.time(), self._exit_s
        self._exit_s = exit_s
        from_s = before_s if self._sick is not None else exit_s
        if (exit_s - self._began_s) * timing.time_scale > BACK_OFF_FORGOTTEN_S:
            self._back_off_s = 0.0
        if from_s is None:
            return
        wait_s = self._back_off_s
        self._back_off_s = min(LONGEST_BACK_OFF_S, self._back_off_s * 2 or FIRST_BACK_OFF_S)
        if not wait_s or from_s + timing.clock_s(wait_s) <= exit_s:
            return
        again_s = from_s + timing.clock_s(wait_s * self._node.rng.uniform(1.0, 1.5))
        place = f"{pod['metadata']['name']}_{pod['metadata']['namespace']}({pod['metadata']['uid']})"
        self._event("Warning", "BackOff", f"Back-off restarting failed container {view.name} in pod {place}")
        await self._sleep(timing.clock_s(BACK_OFF_SHOWN_S))
        if self._stopping:
            return
        view.last, view.ended = view.ended, None
        said = f"back-off {wait_s:.0f}s restarting failed container={view.name} pod={place}"
        view.waiting = ("CrashLoopBackOff", said)
        self._hooks.changed()
        await self._sleep(again_s - self._loop.time())

    def _event(self, type: str, reason: str, message: str) -> None:
        self._hooks.event(type, reason, message, self.view.name)

    async def _sleep(self, seconds: float) -> None:
        """Or until told to stop."""
        end_s = self._loop.time() + seconds
        while not self._stopping and (left_s := end_s - self._loop.time()) > HAIR_S:
            await self._woken(left_s)

    async def _woken(self, within_s: float) -> None:
        self._wake.clear()
        timer = self._loop.call_later(within_s, self._wake.set)
        try:
            await self._wake.wait()
        finally:
            timer.cancel()

    async def _unless_stopped(self, work: Awaitable[None]) -> bool:
        """Whether it was done before we were told to stop."""
        task = asyncio.ensure_future(work)
        task.add_done_callback(lambda _: self._wake.set())
        try:
            while not (task.done() or self._stopping):
                self._wake.clear()
                await self._wake.wait()
            if not task.done():
                return False
            task.result()
            return True
        finally:
            task.cancel()
