"""One pod's life on its node, from admission to the DELETE that ends it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import pairwise

from fakes.config import PlantedBug
from fakes.nodes.address import LISTEN_ANNOTATION
from fakes.nodes.admission import Refusal
from fakes.nodes.config_refs import missing_volume
from fakes.nodes.container_run import ContainerRun, PodHooks
from fakes.nodes.container_start import resync_s
from fakes.nodes.container_status import ContainerView, Ended, Role
from fakes.nodes.gpus import GpuUse, UsesGpus, annotated_use
from fakes.nodes.pod_status import OWN_CONDITIONS, PodFacts, Verdict, pod_status, rejected_status
from fakes.nodes.services import NodeServices
from fakes.nodes.usage import ContainerUse, cpu_milli, memory_bytes
from harness.kube.port import POD, Conflict, Json, NotFound, PatchType

SANDBOX_S = 0.5
"""Scenario seconds until a pod has its sandbox and address."""
REMOVAL_S = 0.5
"""Scenario seconds between the terminal phase and the last DELETE; 0.3 to 0.8 on a real kubelet."""
REFUSED_S = 0.7
"""Scenario seconds until the API hears that a pod was refused: a ReplicaSet that refills got through 5,000 pods an hour
(NVIDIA/k8s-device-plugin#1223)."""
PUT_AWAY_S = 0.6
"""Scenario seconds between the end of a pod's last container and its terminal phase, where nobody deleted it."""

Admit = Callable[["PodWorker"], Awaitable[None]]
"""Raises ``Refusal``."""


class PodWorker:
    """``rebooted``: the pod was here before the machine lost its power, and its containers are gone."""

    def __init__(self, node: NodeServices, pod: Json, pod_ip: str, admit: Admit, *, rebooted: bool = False) -> None:
        self.admitted = False
        self._node = node
        self._pod = pod
        self._admit = admit
        self._rebooted = rebooted
        self._uid = str(pod["metadata"]["uid"])
        self._future_ip = pod_ip
        self._start_time = (pod.get("status") or {}).get("startTime") or node.wall.stamp()
        self._pod_ip = ""
        self._removed = asyncio.Event()
        self._deleted = asyncio.Event()
        self._ending = asyncio.Event()
        self._began_stop_s = 0.0
        self._stop_s: float | None = None
        self._verdict: Verdict | None = None
        self._over = self._terminal = self._initialized = False
        self._dirty = asyncio.Event()
        self._written: Json | None = None
        self._written_version = 0
        self._before: dict[str, Json] = {}
        hooks = PodHooks(
            pod=lambda: self._pod,
            pod_ip=lambda: self._pod_ip,
            changed=self._dirty.set,
            event=self._container_event,
            listens=self._announce,
        )
        self._runs = [ContainerRun(node, hooks, view) for view in _views(pod, rebooted=rebooted, now=node.wall.stamp())]
        self._see_deletion()

    @property
    def pod(self) -> Json:
        return self._pod

    @property
    def views(self) -> list[ContainerView]:
        return [run.view for run in self._runs]

    @property
    def is_over(self) -> bool:
        """It holds nothing of its node any more."""
        return self._over or self._terminal

    def update(self, pod: Json) -> None:
        self._pod = pod
        self._see_deletion()
        self._see_foreign_write()
        self._dirty.set()

    def removed(self) -> None:
        """The object is gone, with or without us: the containers are stopped, and nothing more is written."""
        self._removed.set()
        if not self._deleted.is_set():
            meta, spec = self._pod["metadata"], self._pod["spec"]
            grace_s = meta.get("deletionGracePeriodSeconds", spec.get("terminationGracePeriodSeconds", 30))
            self._stop(grace_s)
            self._deleted.set()

    def kill(self) -> None:
        for run in self._runs:
            run.kill()

    def end(self, verdict: Verdict, grace_s: float) -> None:
        """The kubelet itself ends the pod: it is evicted, or past its deadline."""
        if self._verdict is None and not self.is_over:
            self._verdict = verdict
            self._stop(grace_s)
            self._dirty.set()

    def oom_kill(self, container: str) -> None:
        """Raises KeyError for a container that the pod does not have."""
        next(run for run in self._runs if run.view.name == container).oom_kill()

    def gpu_use(self, container: str) -> GpuUse:
        """What the container does to each of its GPUs."""
        run = next((r for r in self._runs if r.view.name == container), None)
        if run is None or not run.view.is_running:
            return GpuUse()
        process = run.process
        if isinstance(process, UsesGpus):
            return process.gpu_use()
        return annotated_use(self._pod["metadata"].get("annotations") or {})

    def uses(self) -> list[ContainerUse]:
        """What its running containers take of the node."""
        meta = self._pod["metadata"]
        annotations = meta.get("annotations") or {}
        return [
            ContainerUse(
                meta["namespace"],
                meta["name"],
                view.name,
                view.running_since,
                cpu_milli(annotations, self.gpu_use(view.name).busy),
                memory_bytes(annotations),
            )
            for view in self.views
            if view.is_running
        ]

    def show(self) -> None:
        """Something that its status shows has changed outside of it."""
        self._dirty.set()

    async def run(self) -> None:
        try:
            if (self._pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
                await self._admit_and_live()
            await self._deleted.wait()
            if not self._removed.is_set() and PlantedBug.POD_NEVER_GOES in self._node.bugs:
                await self._removed.wait()
            if not self._removed.is_set():
                await asyncio.sleep(self._node.timing.clock_s(REMOVAL_S))
                await self._node.sync.turn()
                await self._delete()
        finally:
            self.kill()
            self._node.devices.release(self._uid)
            self._node.logs.forget(self._pod)

    async def _admit_and_live(self) -> None:
        try:
            async with self._node.sync.admitting():
                await self._admit(self)
        except Refusal as refused:
            self._terminal = True
            self._event("Warning", refused.reason, refused.message)
            await asyncio.sleep(self._node.timing.clock_s(REFUSED_S))
            await self._patch_status(rejected_status(self._pod, refused.reason, refused.message, self._start_time))
            return
        self.admitted = True
        if self._rebooted:
            self._event("Normal", "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.")
        async with asyncio.TaskGroup() as tasks:
            writer = tasks.create_task(self._keep_written())
            deadline = self._watch_deadline()
            self._dirty.set()
            await self._live(tasks)
            self._over = True
            self._node.devices.release(self._uid)
            if not self._ending.is_set():
                await self._write()
                await self._wait_for_ending(self._node.timing.clock_s(PUT_AWAY_S))
            if deadline is not None:
                deadline.cancel()
            writer.cancel()
        await self._node.sync.turn()
        self._terminal = True
        await self._write()

    async def _live(self, tasks: asyncio.TaskGroup) -> None:
        if not self._ending.is_set():
            await self._mount()
            await self._wait_for_ending(self._node.timing.clock_s(SANDBOX_S))
        if not self._ending.is_set():
            self._pod_ip = self._future_ip
            self._dirty.set()
        early = [run for run in self._runs if run.view.role is not Role.MAIN]
        mains = [run for run in self._runs if run.view.role is Role.MAIN]
        lives: dict[ContainerRun, asyncio.Task[None]] = {}
        if await self._initialize(tasks, early, lives):
            self._dirty.set()
            for run, following in pairwise([*mains, None]):
                assert run is not None
                lives[run] = tasks.create_task(run.run())
                if following is not None:
                    await run.tried.wait()
            await asyncio.wait([lives[run] for run in mains])
        await self._stop_sidecars([run for run in early if run.view.role is Role.SIDECAR and run in lives], lives)

    async def _initialize(
        self, tasks: asyncio.TaskGroup, early: Sequence[ContainerRun], lives: dict[ContainerRun, asyncio.Task[None]]
    ) -> bool:
        """Init containers one after another; whether the main containers may start. A pod that is being stopped runs
        them too: each finds that out for itself, and is written down as never located."""
        for run in early:
            lives[run] = tasks.create_task(run.run())
            if run.view.role is Role.INIT:
                await lives[run]
                if run.view.ended is None or run.view.ended.code != 0:
                    return self._ending.is_set()
            else:
                up = asyncio.ensure_future(run.up.wait())
                try:
                    await asyncio.wait({up, lives[run]}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    up.cancel()
        return True

    async def _stop_sidecars(
        self, sidecars: Sequence[ContainerRun], lives: dict[ContainerRun, asyncio.Task[None]]
    ) -> None:
        """The last one first, within what is left of the pod's grace."""
        if self._stop_s is None and sidecars:
            grace_s = self._pod["spec"].get("terminationGracePeriodSeconds", 30)
            self._stop_s = asyncio.get_running_loop().time() + self._node.timing.clock_s(grace_s)
        for run in reversed(sidecars):
            assert self._stop_s is not None
            run.stop(self._stop_s)
            await lives[run]

    async def _mount(self) -> None:
        while not self._ending.is_set():
            why = await missing_volume(self._node.client, self._pod["metadata"]["namespace"], self._pod)
            if why is None:
                return
            self._event("Warning", "FailedMount", why)
            await self._wait_for_ending(resync_s(self._node))

    async def _wait_for_ending(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._ending.wait()
        except TimeoutError:
            return

    def _watch_deadline(self) -> asyncio.TimerHandle | None:
        active_s = self._pod["spec"].get("activeDeadlineSeconds")
        if active_s is None:
            return None
        return asyncio.get_running_loop().call_later(self._node.timing.clock_s(float(active_s)), self._deadline_over)

    def _deadline_over(self) -> None:
        verdict = Verdict("DeadlineExceeded", "Pod was active on the node longer than the specified deadline")
        self._event("Normal", verdict.reason, verdict.message)
        self.end(verdict, self._pod["spec"].get("terminationGracePeriodSeconds", 30))

    def _see_deletion(self) -> None:
        if self._pod["metadata"].get("deletionTimestamp"):
            self._stop(self._pod["metadata"].get("deletionGracePeriodSeconds") or 0)
            self._deleted.set()

    def _stop(self, grace_s: float) -> None:
        """The grace counts from the moment it was first seen; a second deletion may shorten it."""
        loop = asyncio.get_running_loop()
        if not self._ending.is_set():
            self._began_stop_s = loop.time()
        deadline_s = self._began_stop_s + self._node.timing.clock_s(grace_s)
        self._stop_s = deadline_s if self._stop_s is None else min(self._stop_s, deadline_s)
        for run in self._runs:
            if run.view.role is not Role.SIDECAR:
                run.stop(self._stop_s)
        self._ending.set()

    def _see_foreign_write(self) -> None:
        """Whoever overwrote a condition that is ours (the node controller marks pods of a silent node unready) is
        corrected, once what we wrote last has come back to us."""
        if self._written is None or int(self._pod["metadata"]["resourceVersion"]) <= self._written_version:
            return
        served = {c["type"]: c["status"] for c in (self._pod.get("status") or {}).get("conditions") or ()}
        if any(served.get(t) != c["status"] for t, c in self._before.items()):
            self._written = None

    async def _keep_written(self) -> None:
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            await self._node.sync.turn()
            if not (self._ending.is_set() and all(run.finished for run in self._runs)):
                await self._write()  # the last write of a pod that is being ended has its terminal phase, too

    async def _write(self) -> None:
        views = self.views
        self._initialized = self._initialized or any(v.container_id for v in views if v.role is Role.MAIN)
        facts = PodFacts(
            self._start_time,
            self._node.machine.address,
            self._pod_ip,
            over=self._over or all(run.finished for run in self._runs),
            terminal=self._terminal,
            initialized=self._initialized,
            verdict=self._verdict,
        )
        status = pod_status(self._pod, views, facts, self._before, self._node.wall.stamp(), self._node.devices.health)
        if status != self._written:
            await self._patch_status(status)

    async def _patch_status(self, status: Json) -> None:
        written = await self._patch({"metadata": {"uid": self._uid}, "status": status}, subresource="status")
        if written is not None:
            self._written = status
            self._written_version = int(written["metadata"]["resourceVersion"])
            self._before = {c["type"]: c for c in status.get("conditions") or () if c["type"] in OWN_CONDITIONS}

    async def _announce(self, address: tuple[str, int]) -> None:
        host, port = address
        annotations = {LISTEN_ANNOTATION: f"{host}:{port}"}
        await self._patch({"metadata": {"uid": self._uid, "annotations": annotations}})

    async def _patch(self, patch: Json, subresource: str | None = None) -> Json | None:
        """None when the pod is gone, or another has taken its name."""
        name, namespace = self._pod["metadata"]["name"], self._pod["metadata"]["namespace"]
        try:
            return await self._node.client.patch(
                POD, name, patch, namespace, type=PatchType.STRATEGIC, subresource=subresource
            )
        except (NotFound, Conflict):
            return None

    async def _delete(self) -> None:
        name, namespace = self._pod["metadata"]["name"], self._pod["metadata"]["namespace"]
        try:
            await self._node.client.delete_now(POD, name, namespace, self._uid)
        except (NotFound, Conflict):
            return  # somebody was faster

    def _event(self, type: str, reason: str, message: str, field_path: str = "") -> None:
        self._node.events.event({"apiVersion": "v1", "kind": "Pod", **self._pod}, type, reason, message, field_path)

    def _container_event(self, type: str, reason: str, message: str, container: str) -> None:
        main = any(c["name"] == container for c in self._pod["spec"]["containers"])
        self._event(type, reason, message, f"spec.{'containers' if main else 'initContainers'}{{{container}}}")


def _views(pod: Json, *, rebooted: bool, now: str) -> list[ContainerView]:
    spec = pod["spec"]
    inits = spec.get("initContainers") or ()
    found = [ContainerView(c, Role.SIDECAR if c.get("restartPolicy") == "Always" else Role.INIT) for c in inits] + [
        ContainerView(c) for c in spec["containers"]
    ]
    if inits:
        for view in found:
            view.waiting = ("PodInitializing", "")
    if rebooted:
        status = pod.get("status") or {}
        before = {
            s["name"]: s
            for s in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ()))
        }
        for view in found:
            if view.name in before:
                _take_over(view, before[view.name], now)
    return found


def _take_over(view: ContainerView, status: Json, now: str) -> None:
    """What a kubelet makes of a container that it finds no trace of after the machine was off."""
    view.restarts, view.container_id = status.get("restartCount", 0), status.get("containerID", "")
    view.image_there = bool(status.get("imageID"))
    if running := (status.get("state") or {}).get("running"):
        view.ended = Ended(255, "Unknown", "", running["startedAt"], now, view.container_id)
    elif ended := (status.get("state") or {}).get("terminated"):
        view.ended = Ended(
            ended["exitCode"], ended.get("reason", ""), ended.get("message", ""), ended.get("startedAt", ""),
            ended.get("finishedAt", ""), ended.get("containerID", ""),
        )  # fmt: skip
