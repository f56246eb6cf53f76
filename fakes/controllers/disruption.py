"""Keeps the status of every PodDisruptionBudget: the eviction subresource believes what stands there.

The subresource spends ``disruptionsAllowed`` and notes the pod in ``disruptedPods`` in one write. This controller must
not undo that from an older view. So every write carries the resourceVersion of the budget that it was computed from:
had an eviction come in between, it is refused and computed again; and a noted pod counts as gone until its deletion
shows.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import NamedTuple

from fakes.clock import WallClock, parse_stamp
from fakes.config import PlantedBug
from fakes.controllers.budget import STALE_DISRUPTION_S, Selected, failed_status, is_healthy, next_status
from fakes.controllers.controller import Reconciler, run_controller
from fakes.controllers.events import EventRecorder
from fakes.controllers.informer import Informer, Key, key_of
from fakes.controllers.label_text import selector_in_go
from fakes.controllers.objects import (
    controller_of,
    is_ready,
    is_terminating,
    merged,
    namespace_of,
)
from fakes.controllers.owner_scale import Owner, OwnerScales, ScaleUnknown
from fakes.controllers.rollout import wanted_replicas
from fakes.controllers.tally import Tally
from fakes.kube.selectors import match_label_selector
from harness.kube.port import PDB, POD, EventType, Json, Kube, NotFound

UNMANAGED = (
    "Pods selected by this PodDisruptionBudget (selector: {}) were found to be unmanaged. As a result, the status of "
    "the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please "
    'set ".spec.minAvailable" field of the PDB to an integer value.'
)


class _Face(NamedTuple):
    """What of a pod its budgets count."""

    healthy: bool
    owner: Owner | None

    @classmethod
    def of(cls, pod: Json) -> _Face:
        return cls(is_healthy(pod), Owner.of(pod))


class DisruptionController:
    """A pod's change costs the same however many pods a budget protects: they are counted as they change."""

    def __init__(self, kube: Kube, wall: WallClock, bugs: Collection[PlantedBug] = ()) -> None:
        self._kube = kube
        self._counts_unready = PlantedBug.BUDGET_COUNTS_UNREADY in bugs
        self._wall = wall
        self._events = EventRecorder(kube, wall, "controllermanager")
        self._pdbs = Informer(kube, PDB)
        self._pods = Informer(kube, POD)
        self._scales = OwnerScales(kube)
        self._pdbs_of = self._pdbs.index(namespace_of)
        self._pods_of = self._pods.index(namespace_of)
        self._selected: dict[Key, Tally[_Face]] = {}  # by budget
        self._loop: Reconciler[Key] = Reconciler(self._sync)
        self._pdbs.on_change(self._pdb_changed)
        self._pods.on_change(self._pod_changed)
        for owners in self._scales.informers:
            owners.on_change(self._scale_changed)

    async def run(self) -> None:
        await run_controller((*self._scales.informers, self._pods, self._pdbs), self._loop.run)

    def _pdb_changed(self, type: EventType, new: Json, old: Json | None) -> None:
        key = key_of(new)
        if type is EventType.DELETED:
            self._selected.pop(key, None)
        elif old is None or new["spec"].get("selector") != old["spec"].get("selector"):
            tally = self._selected[key] = Tally()
            for pod in self._pods_of.get(namespace_of(new)):
                if _selects(new, pod):
                    tally.put(key_of(pod), _Face.of(pod))
        self._loop.queue.add(key)

    def _pod_changed(self, type: EventType, new: Json, old: Json | None) -> None:
        if type is EventType.MODIFIED and old is not None and _counted_state(new) == _counted_state(old):
            return
        pod, face = key_of(new), None if type is EventType.DELETED else _Face.of(new)
        for pdb in self._pdbs_of.get(namespace_of(new)):
            key = key_of(pdb)
            tally = self._selected[key]
            if face is not None and _selects(pdb, new):
                tally.put(pod, face)
            elif tally.face(pod) is not None:
                tally.drop(pod)
            else:
                continue
            self._loop.queue.add(key)

    def _scale_changed(self, type: EventType, new: Json, old: Json | None) -> None:
        if type is EventType.MODIFIED and old is not None and wanted_replicas(new) == wanted_replicas(old):
            return
        for pdb in self._pdbs_of.get(namespace_of(new)):
            self._loop.queue.add(key_of(pdb))

    async def _sync(self, key: Key) -> None:
        pdb = self._pdbs.objects.get(key)
        if pdb is None:
            return
        tally = self._selected[key]
        if not len(tally):
            await self._events.normal(PDB, pdb, "NoPods", "No matching pods found")
        now, stamp = self._wall.now(), self._wall.stamp()
        try:
            scale = await self._scale_of(pdb, tally) if _needs_scale(pdb) else 0
            status = next_status(pdb, self._counted(pdb, tally), scale, now, stamp)
        except (ScaleUnknown, ValueError) as error:  # ValueError: a value that is neither a number nor a percentage
            why = f"Failed to calculate the number of expected pods: {error}"
            await self._events.warning(PDB, pdb, "CalculateExpectedPodCountFailed", why)
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

    def _counted(self, pdb: Json, tally: Tally[_Face]) -> Selected:
        names = (pdb.get("status") or {}).get("disruptedPods") or {}
        keys = ((namespace_of(pdb), name) for name in names)
        noted = [self._pods.objects[key] for key in keys if tally.face(key) is not None and key in self._pods.objects]
        healthy = sum(n for face, n in tally.counts.items() if face.healthy or self._counts_unready)
        return Selected(len(tally), healthy, noted)

    async def _scale_of(self, pdb: Json, tally: Tally[_Face]) -> int:
        """Replicas that the pods' controllers ask for, each counted once. Raises ``ScaleUnknown``."""
        scales: dict[str, int] = {}
        unmanaged = False
        for owner in {face.owner: None for face in tally.counts}:
            if owner is None:
                unmanaged = True
                continue
            found = await self._scales.of(namespace_of(pdb), owner)
            if found is None:
                pod = next(name for (_, name), face in tally.items() if face.owner == owner)
                raise ScaleUnknown(f'found no controllers for pod "{pod}"')
            scales[found.uid] = found.replicas
        if unmanaged:
            why = UNMANAGED.format(selector_in_go(pdb["spec"].get("selector")))
            await self._events.warning(PDB, pdb, "UnmanagedPods", why)
        return sum(scales.values())


def _selects(pdb: Json, pod: Json) -> bool:
    selector = (pdb.get("spec") or {}).get("selector")
    if not match_label_selector(selector, pod["metadata"].get("labels") or {}):
        return False
    return namespace_of(pdb) == namespace_of(pod)


def _needs_scale(pdb: Json) -> bool:
    return "maxUnavailable" in pdb["spec"] or isinstance(pdb["spec"].get("minAvailable"), str)


def _counted_state(pod: Json) -> tuple[object, ...]:
    return pod["metadata"].get("labels"), is_terminating(pod), is_ready(pod), controller_of(pod)
