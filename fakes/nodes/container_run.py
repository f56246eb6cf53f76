"""One container of a pod on a node: pull, create, probe, restart, stop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from fakes.config import PlantedBug
from fakes.nodes.images import pulled_message
from fakes.nodes.pod_status import NEVER_LOCATED, ContainerView, Ended
from fakes.nodes.probes import read_probe, results
from fakes.nodes.runtime import Container
from fakes.nodes.services import NodeServices
from harness.kube.port import Json

T = TypeVar("T")

FIRST_BACK_OFF_S = 10
LONGEST_BACK_OFF_S = 300
BACK_OFF_FORGOTTEN_S = 600
"""A process that ran this long starts the back-off afresh."""
GRACE_MIN_S = 2
"""SIGTERM gets at least this long, even where the preStop hook ate all of the grace."""


@dataclass(frozen=True, slots=True)
class PodHooks:
    """What a container needs of its pod: the newest object, and where its own news go."""

    pod: Callable[[], Json]
    pod_ip: Callable[[], str]
    changed: Callable[[], None]
    event: Callable[[str, str, str], None]
    listens: Callable[[tuple[str, int]], Awaitable[None]]


class ContainerRun:
    """``run`` ends when the container will not run again: its pod is stopped, or its restart policy says so."""

    def __init__(self, node: NodeServices, hooks: PodHooks, view: ContainerView) -> None:
        self.view = view
        self.finished = False
        """It will not run again. Set before the news of its end, so that a pod's last container and its terminal phase
        are one write."""
        self._node = node
        self._hooks = hooks
        self._process: Container | None = None
        self._stopping = asyncio.Event()
        self._deadline_s = 0.0
        self._deadline_moved = asyncio.Event()
        self._started = asyncio.Event()
        self._back_off_s = 0.0
        self._began_s = 0.0

    def stop(self, deadline_s: float) -> None:
        """PreStop hook, SIGTERM, and SIGKILL at ``deadline_s`` of the event loop. Again with an earlier deadline, it
        hurries."""
        self._deadline_s = min(deadline_s, self._deadline_s) if self._stopping.is_set() else deadline_s
        self._stopping.set()
        self._deadline_moved.set()

    def kill(self) -> None:
        """The machine has lost its power: no hook, no event."""
        if self._process is not None:
            self._process.kill()

    async def run(self) -> None:
        while not self._stopping.is_set():
            if not await self._prepare():
                break
            await self._run_once()
            if self.finished:
                return
            await self._back_off()
        self.view.ended = self.view.ended or self.view.last or NEVER_LOCATED
        self._finish()

    async def _prepare(self) -> bool:
        """False when told to stop meanwhile."""
        await self._unless_stopped(self._pull())
        durations = self._node.timing.durations
        await self._unless_stopped(asyncio.sleep(self._node.timing.draw_s(durations.container_start, self._node.rng)))
        return not self._stopping.is_set()

    async def _pull(self) -> None:
        image, policy = str(self.view.spec.get("image", "")), self.view.spec.get("imagePullPolicy", "IfNotPresent")
        if policy != "Always" and image in self._node.images.names:
            there = f'Container image "{image}" already present on machine and can be accessed by the pod'
            self._hooks.event("Normal", "Pulled", there)
        else:
            self._hooks.event("Normal", "Pulling", f'Pulling image "{image}"')
            pulled = await self._node.images.pull(image)
            self._hooks.event("Normal", "Pulled", pulled_message(image, pulled))
        self.view.image_there = True

    async def _run_once(self) -> None:
        view = self.view
        view.container_id = f"containerd://{self._node.rng.getrandbits(256):064x}"
        try:
            process = await self._node.runtime.create(self._hooks.pod(), view.spec)
        except OSError as error:
            self._hooks.event("Warning", "Failed", f"Error: {error}")
            view.ended = self._ended(128, "StartError", str(error))
            self._finish(128)
            return
        self._process = process
        if process.address is not None:
            await self._hooks.listens(process.address)
        self._began_s = asyncio.get_running_loop().time()
        view.running_since, view.ended = self._node.wall.stamp(), None
        view.started = "startupProbe" not in view.spec
        view.ready = view.started and self._ready_unasked()
        self._hooks.event("Normal", "Created", "Container created")
        self._hooks.event("Normal", "Started", "Container started")
        self._hooks.changed()
        code = await self._until_exit(process)
        self._process = None
        self._started.clear()
        view.ready = view.started = False
        view.ended = self._ended(code, "Completed" if code == 0 else "Error", "")
        self._finish(code)

    def _finish(self, code: int | None = None) -> None:
        self.finished = code is None or self._stopping.is_set() or not self._restarts(code)
        self._hooks.changed()

    def _ready_unasked(self) -> bool:
        return "readinessProbe" not in self.view.spec or PlantedBug.READY_BEFORE_SERVING in self._node.bugs

    async def _until_exit(self, process: Container) -> int:
        """Readiness is probed to the end, also while the container shuts down; startup and liveness are not."""
        exited = asyncio.ensure_future(process.wait())
        sick = asyncio.ensure_future(self._until_sick(process))
        ready = asyncio.ensure_future(self._watch_readiness(process))
        stop = asyncio.ensure_future(self._stopping.wait())
        tasks: tuple[asyncio.Future[Any], ...] = (exited, sick, ready, stop)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    task.result()  # a defect in a probe must not pass for a sick container
            sick.cancel()
            if not exited.done():
                await self._shut_down(process, exited)
            return await exited
        finally:
            for task in tasks:
                task.cancel()

    async def _until_sick(self, process: Container) -> None:
        """Returns when the container has failed its startup or liveness probe and must be restarted."""
        view, timing, ip = self.view, self._node.timing, self._hooks.pod_ip()
        if startup := read_probe("Startup", view.spec, ip, timing):
            async for ok in results(startup, process, self._unhealthy):
                if not ok:
                    return
                break
        view.started = True
        self._started.set()
        self._hooks.changed()
        if liveness := read_probe("Liveness", view.spec, ip, timing):
            async for ok in results(liveness, process, self._unhealthy):
                if not ok:
                    return
        await asyncio.Event().wait()

    async def _watch_readiness(self, process: Container) -> None:
        await self._started.wait()
        probe = read_probe("Readiness", self.view.spec, self._hooks.pod_ip(), self._node.timing)
        if probe is None or self._ready_unasked():
            self._set_ready(True)
        else:
            async for ok in results(probe, process, self._unhealthy):
                self._set_ready(ok)
        await asyncio.Event().wait()

    async def _shut_down(self, process: Container, exited: asyncio.Future[int]) -> None:
        loop, timing, name = asyncio.get_running_loop(), self._node.timing, self.view.name
        if self._stopping.is_set():
            self._hooks.event("Normal", "Killing", f"Stopping container {name}")
        else:
            self._hooks.event("Normal", "Killing", f"Container {name} failed liveness probe, will be restarted")
            grace_s = self._hooks.pod()["spec"].get("terminationGracePeriodSeconds", 30)
            self._deadline_s = loop.time() + timing.clock_s(grace_s)
        hook_ends_s = loop.time() + timing.clock_s(self._pre_stop_s())
        await self._wait(exited, lambda: min(hook_ends_s, self._deadline_s))
        if hook_ends_s > self._deadline_s and not exited.done():
            self._hooks.event("Warning", "FailedPreStopHook", "PreStopHook failed")
        kill_at_least_s = loop.time() + timing.clock_s(GRACE_MIN_S)
        process.terminate()
        await self._wait(exited, lambda: max(self._deadline_s, kill_at_least_s))
        if not exited.done():
            process.kill()

    async def _wait(self, exited: asyncio.Future[int], until_s: Callable[[], float]) -> None:
        """Until the process has ended, or a moment that may be brought nearer meanwhile."""
        while not exited.done():
            left_s = until_s() - asyncio.get_running_loop().time()
            if left_s <= 0:
                return
            self._deadline_moved.clear()
            moved = asyncio.ensure_future(self._deadline_moved.wait())
            either: set[asyncio.Future[Any]] = {exited, moved}
            try:
                await asyncio.wait(either, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
            finally:
                moved.cancel()

    def _pre_stop_s(self) -> float:
        hook: Json = (self.view.spec.get("lifecycle") or {}).get("preStop") or {}
        if hook and "sleep" not in hook:
            self._hooks.event("Warning", "FailedPreStopHook", "PreStopHook failed: only sleep hooks are emulated")
        return float((hook.get("sleep") or {}).get("seconds") or 0)

    def _restarts(self, code: int) -> bool:
        policy = self._hooks.pod()["spec"].get("restartPolicy", "Always")
        return policy == "Always" or (policy == "OnFailure" and code != 0)

    async def _back_off(self) -> None:
        """The first restart is at once; the next wait 10 s, 20 s, 40 s … (scenario), counted from the exit."""
        view, timing, pod = self.view, self._node.timing, self._hooks.pod()
        ran_s = (asyncio.get_running_loop().time() - self._began_s) * timing.time_scale
        if ran_s > BACK_OFF_FORGOTTEN_S:
            self._back_off_s = 0.0
        wait_s = self._back_off_s
        self._back_off_s = min(LONGEST_BACK_OFF_S, self._back_off_s * 2 or FIRST_BACK_OFF_S)
        view.last, view.ended, view.running_since = view.ended, None, ""
        view.restarts += 1
        if wait_s:
            meta = pod["metadata"]
            place = f"{meta['name']}_{meta['namespace']}({meta['uid']})"
            back_off = f"back-off {wait_s:.0f}s restarting failed container={view.name} pod={place}"
            view.waiting = ("CrashLoopBackOff", back_off)
            self._hooks.event("Warning", "BackOff", f"Back-off restarting failed container {view.name} in pod {place}")
            self._hooks.changed()
            await self._unless_stopped(asyncio.sleep(timing.clock_s(wait_s)))

    def _ended(self, code: int, reason: str, message: str) -> Ended:
        now = self._node.wall.stamp()
        return Ended(code, reason, message, self.view.running_since or now, now, self.view.container_id)

    def _set_ready(self, ready: bool) -> None:
        if ready is not self.view.ready:
            self.view.ready = ready
            self._hooks.changed()

    def _unhealthy(self, message: str) -> None:
        self._hooks.event("Warning", "Unhealthy", message)

    async def _unless_stopped(self, work: Coroutine[Any, Any, T]) -> T | None:
        task = asyncio.ensure_future(work)
        stop = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() else None
        finally:
            task.cancel()
            stop.cancel()
