"""Keeps the status of every PodDisruptionBudget: the eviction subresource believes what stands there.

The subresource spends ``disruptionsAllowed`` and notes the pod in ``disruptedPods`` in one write. This controller must
not undo that from an older view. So every write carries the resourceVersion of the budget that it was computed from:
had an eviction come in between, it is refused and computed again; and a noted pod counts as gone until its deletion
shows.
"""

from __future__ import annotations

from datetime import timedelta

from fakes.clock import WallClock, parse_stamp
from fakes.controllers.budget import STALE_DISRUPTION_S, failed_status, next_status
from fakes.controllers.controller import Reconciler, run_controller
from fakes.controllers.events import EventRecorder
from fakes.controllers.informer import Informer, Key, key_of
from fakes.controllers.label_text import selector_in_go
from fakes.controllers.objects import (
    controller_of,
    is_controlled_by,
    is_ready,
    is_terminating,
    merged,
    namespace_of,
    uid_of,
)
from fakes.controllers.rollout import wanted_replicas
from fakes.kube.selectors import match_label_selector
from harness.kube.port import DEPLOYMENT, PDB, POD, REPLICA_SET, EventType, Json, Kube, NotFound

UNMANAGED = (
    "Pods selected by this PodDisruptionBudget (selector: {}) were found to be unmanaged. As a result, the status of "
    "the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please "
    'set ".spec.minAvailable" field of the PDB to an integer value.'
)


class DisruptionController:
    def __init__(self, kube: Kube, wall: WallClock) -> None:
        self._kube = kube
        self._wall = wall
        self._events = EventRecorder(kube, wall, "controllermanager")
        self._pdbs = Informer(kube, PDB)
        self._pods = Informer(kube, POD)
        self._sets = Informer(kube, REPLICA_SET)
        self._deployments = Informer(kube, DEPLOYMENT)
        self._loop: Reconciler[Key] = Reconciler(self._sync)
        self._pdbs.on_change(lambda type, new, old: self._loop.queue.add(key_of(new)))
        self._pods.on_change(self._pod_changed)
        self._sets.on_change(self._scale_changed)
        self._deployments.on_change(self._scale_changed)

    async def run(self) -> None:
        await run_controller((self._deployments, self._sets, self._pods, self._pdbs), self._loop.run)

    def _pod_changed(self, type: EventType, new: Json, old: Json | None) -> None:
        if type is EventType.MODIFIED and old is not None and _counted_state(new) == _counted_state(old):
            return
        for pdb in self._pdbs.values():
            if _selects(pdb, new) or (old is not None and _selects(pdb, old)):
                self._loop.queue.add(key_of(pdb))

    def _scale_changed(self, type: EventType, new: Json, old: Json | None) -> None:
        if type is EventType.MODIFIED and old is not None and wanted_replicas(new) == wanted_replicas(old):
            return
        for pdb in self._pdbs.values():
            if namespace_of(pdb) == namespace_of(new):
                self._loop.queue.add(key_of(pdb))

    async def _sync(self, key: Key) -> None:
        pdb = self._pdbs.objects.get(key)
        if pdb is None:
            return
        pods = [p for p in self._pods.objects.values() if _selects(pdb, p)]
        if not pods:
            await self._events.normal(PDB, pdb, "NoPods", "No matching pods found")
        now, stamp = self._wall.now(), self._wall.stamp()
        scale, unmanaged = self._scale_of(pods)
        if unmanaged and _needs_scale(pdb):
            why = UNMANAGED.format(selector_in_go(pdb["spec"].get("selector")))
            await self._events.warning(PDB, pdb, "UnmanagedPods", why)
        try:
            status = next_status(pdb, pods, scale, now, stamp)
        except ValueError as error:  # a value that is neither a number nor a percentage
            status = failed_status(pdb, str(error), stamp)
        if status != (pdb.get("status") or {}):
            try:
                await self._kube.update(PDB, merged(pdb, status=status), subresource="status")
            except NotFound:
                return
        self._look_again(key, status)

    def _look_again(self, key: Key, status: Json) -> None:
        """When the oldest admitted eviction would count as failed."""
        noted = (status.get("disruptedPods") or {}).values()
        if noted:
            due = min(map(parse_stamp, noted)) + timedelta(seconds=STALE_DISRUPTION_S)
            self._loop.queue.add_after(key, max(0.0, (due - self._wall.now()).total_seconds()) + 0.001)

    def _scale_of(self, pods: list[Json]) -> tuple[int, list[str]]:
        """Replicas that the pods' controllers ask for, each counted once, and the names of pods without one."""
        scales: dict[str, int] = {}
        unmanaged = []
        for pod in pods:
            found = self._scale_of_owner(pod)
            if found is None:
                unmanaged.append(str(pod["metadata"]["name"]))
            else:
                scales[found[0]] = found[1]
        return sum(scales.values()), unmanaged

    def _scale_of_owner(self, pod: Json) -> tuple[str, int] | None:
        ref = controller_of(pod)
        if ref is None or ref["kind"] != REPLICA_SET.kind:
            return None
        owner = self._sets.objects.get((namespace_of(pod), ref["name"]))
        if owner is None or not is_controlled_by(pod, owner):
            return None
        top = controller_of(owner)
        if top is not None and top["kind"] == DEPLOYMENT.kind:
            owner = self._deployments.objects.get((namespace_of(pod), top["name"]))
            if owner is None or uid_of(owner) != top["uid"]:
                return None
        return uid_of(owner), wanted_replicas(owner)


def _selects(pdb: Json, pod: Json) -> bool:
    return namespace_of(pdb) == namespace_of(pod) and match_label_selector(
        (pdb.get("spec") or {}).get("selector"), pod["metadata"].get("labels") or {}
    )


def _needs_scale(pdb: Json) -> bool:
    return "maxUnavailable" in pdb["spec"] or isinstance(pdb["spec"].get("minAvailable"), str)


def _counted_state(pod: Json) -> tuple[object, ...]:
    return pod["metadata"].get("labels"), is_terminating(pod), is_ready(pod)
