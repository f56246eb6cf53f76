"""One pod's life on its node, from admission to the DELETE that ends it."""

from __future__ import annotations

import asyncio

from fakes.nodes.address import LISTEN_ANNOTATION
from fakes.nodes.container_run import ContainerRun, PodHooks
from fakes.nodes.devices import TooFewDevices
from fakes.nodes.labels import GPU_RESOURCE
from fakes.nodes.pod_status import OWN_CONDITIONS, ContainerView, PodFacts, pod_status, rejected_status
from fakes.nodes.services import NodeServices
from harness.kube.port import POD, Conflict, Json, NotFound, PatchType

SANDBOX_S = 0.5
"""Scenario seconds until a pod has its sandbox and address."""
REMOVAL_S = 0.5
"""Scenario seconds between the terminal phase and the last DELETE; 0.3 to 0.8 on a real kubelet."""
REJECTED = "UnexpectedAdmissionError"


class PodWorker:
    def __init__(self, node: NodeServices, pod: Json, pod_ip: str) -> None:
        self._node = node
        self._pod = pod
        self._uid = str(pod["metadata"]["uid"])
        self._future_ip = pod_ip
        self._start_time = node.wall.stamp()
        self._pod_ip = ""
        self._removed = asyncio.Event()
        self._deleted = asyncio.Event()
        self._deleted_s: float | None = None
        self._dirty = asyncio.Event()
        self._written: Json | None = None
        self._written_version = 0
        self._before: dict[str, Json] = {}
        hooks = PodHooks(
            pod=lambda: self._pod,
            pod_ip=lambda: self._pod_ip,
            changed=self._dirty.set,
            event=self._event,
            listens=self._announce,
        )
        self._runs = [ContainerRun(node, hooks, ContainerView(spec)) for spec in pod["spec"]["containers"]]
        self._see_deletion()

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

    def kill(self) -> None:
        for run in self._runs:
            run.kill()

    async def run(self) -> None:
        try:
            if (self._pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
                await self._admit_and_live()
            await self._deleted.wait()
            if not self._removed.is_set():
                await asyncio.sleep(self._node.timing.clock_s(REMOVAL_S))
                await self._delete()
        finally:
            self.kill()
            self._node.devices.release(self._uid)

    async def _admit_and_live(self) -> None:
        try:
            self._allocate()
        except TooFewDevices as error:
            self._event("Warning", REJECTED, str(error))
            await self._patch_status(rejected_status(self._pod, REJECTED, str(error), self._start_time))
            return
        await self._write()
        if not self._deleted.is_set():
            await asyncio.sleep(self._node.timing.clock_s(SANDBOX_S))
            self._pod_ip = self._future_ip
            self._dirty.set()
        async with asyncio.TaskGroup() as tasks:
            writer = tasks.create_task(self._keep_written())
            lives = [tasks.create_task(run.run()) for run in self._runs]
            await asyncio.wait(lives)
            writer.cancel()
        await self._write()

    def _allocate(self) -> None:
        """All containers' devices or none."""
        try:
            for run in self._runs:
                limits = (run.view.spec.get("resources") or {}).get("limits") or {}
                if wanted := int(limits.get(GPU_RESOURCE, 0)):
                    run.view.devices = self._node.devices.allocate(self._uid, wanted)
        except TooFewDevices:
            self._node.devices.release(self._uid)
            raise

    def _see_deletion(self) -> None:
        if self._pod["metadata"].get("deletionTimestamp"):
            self._stop(self._pod["metadata"].get("deletionGracePeriodSeconds") or 0)

    def _stop(self, grace_s: float) -> None:
        """The grace counts from the deletion as first seen; a second deletion may shorten it."""
        if self._deleted_s is None:
            self._deleted_s = asyncio.get_running_loop().time()
        for run in self._runs:
            run.stop(self._deleted_s + self._node.timing.clock_s(grace_s))
        self._deleted.set()

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
            await self._write()

    async def _write(self) -> None:
        terminal = all(run.finished for run in self._runs)
        if terminal:
            self._node.devices.release(self._uid)
        facts = PodFacts(self._start_time, self._node.machine.address, self._pod_ip, terminal)
        views = [run.view for run in self._runs]
        status = pod_status(self._pod, views, facts, self._before, self._node.wall.stamp())
        if status != self._written:
            await self._patch_status(status)

    async def _patch_status(self, status: Json) -> None:
        written = await self._patch({"metadata": {"uid": self._uid}, "status": status}, subresource="status")
        if written is not None:
            self._written = status
            self._written_version = int(written["metadata"]["resourceVersion"])
            self._before = {c["type"]: c for c in status.get("conditions", ()) if c["type"] in OWN_CONDITIONS}

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

    def _event(self, type: str, reason: str, message: str) -> None:
        self._node.events.event({"apiVersion": "v1", "kind": "Pod", **self._pod}, type, reason, message)
