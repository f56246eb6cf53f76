"""Removes what nobody owns any more: dependents of deleted owners, and pods of nodes that are gone."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

from fakes.clock import WallClock
from fakes.config import PlantedBug
from fakes.controllers.controller import Reconciler, run_controller
from fakes.controllers.informer import Change, Informer, key_of
from fakes.controllers.objects import (
    is_terminal,
    is_terminating,
    name_of,
    namespace_of,
    node_of,
    sorted_by_name,
    uid_of,
)
from fakes.controllers.ownership import Ownership, Reference, owner_references, owner_uids, without_owners
from fakes.controllers.taint_eviction import disruption_patch
from fakes.timing import Timing
from harness.kube import port
from harness.kube.port import NODE, POD, ApiError, EventType, Json, Kube, NotFound, PatchType, Resource

WATCHED: tuple[Resource, ...] = tuple(r for r in port.RESOURCES if r != port.EVENT)
"""Events neither own nor are owned."""
KINDS = {(r.api_version, r.kind): r for r in port.RESOURCES}

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
POD_PASS_S = 20.0
QUARANTINE_S = 40.0


class GarbageCollector:
    """``wall`` only stamps the condition that says why a pod was removed; without it the condition has no time."""

    def __init__(
        self,
        kube: Kube,
        wall: WallClock | None = None,
        timing: Timing | None = None,
        bugs: Collection[PlantedBug] = (),
    ) -> None:
        self._kube = kube
        self._keeps_orphans = PlantedBug.ORPHANED_PODS_KEPT in bugs
        self._wall = wall
        self._timing = timing or Timing()
        self._owners = Ownership()
        self._caches = {resource: Informer(kube, resource) for resource in WATCHED}
        self._loop: Reconciler[Reference] = Reconciler(self._sync)
        self._missing_since: dict[str, float] = {}  # node name → loop time at which pods were first seen without it
        for resource, cache in self._caches.items():
            cache.on_change(self._listener(resource))

    async def run(self) -> None:
        passes = (self._loop.run,) if self._keeps_orphans else (self._loop.run, self._collect_pods)
        await run_controller(tuple(self._caches.values()), *passes)

    def _listener(self, resource: Resource) -> Change:
        def changed(type: EventType, new: Json, old: Json | None) -> None:
            self._owners.note(resource, type, new, old)
            if type is EventType.DELETED:
                for dependent in self._owners.owned_by(uid_of(new)):
                    self._loop.queue.add(dependent)
                for owner in owner_uids(new):
                    self._look_at_owner(owner)
            elif is_terminating(new) or (owner_references(new) and _owners_changed(new, old)):
                self._loop.queue.add((resource, *key_of(new)))

        return changed

    def _look_at_owner(self, uid: str) -> None:
        """An owner that waits for its dependents to go may be free now."""
        place = self._owners.place_of(uid)
        if place is not None:
            self._loop.queue.add(place)

    async def _sync(self, place: Reference) -> None:
        resource, namespace, name = place
        obj = self._caches[resource].objects.get((namespace, name))
        if obj is None:
            return
        if is_terminating(obj):
            await self._finish_owner(resource, obj)
            return
        gone = [r["uid"] for r in owner_references(obj) if not await self._exists(r, namespace)]
        if not gone:
            return
        if len(gone) == len(owner_references(obj)):
            await self._delete(resource, obj)
            return
        references = without_owners(obj, gone)
        metadata = {"ownerReferences": references, "resourceVersion": obj["metadata"]["resourceVersion"]}
        await self._kube.patch(resource, name, {"metadata": metadata}, namespace or None)

    async def _exists(self, reference: Json, namespace: str) -> bool:
        """Asks the server when the cache does not know the owner: it may be younger than the cache."""
        if self._owners.is_alive(str(reference["uid"])):
            return True
        resource = KINDS.get((reference["apiVersion"], reference["kind"]))
        if resource is None:
            return True  # of a kind that is not served here: nobody can tell, so nothing is removed
        try:
            found = await self._kube.get(resource, reference["name"], namespace if resource.namespaced else None)
        except NotFound:
            return False
        return uid_of(found) == str(reference["uid"])

    async def _delete(self, resource: Resource, obj: Json) -> None:
        try:
            await self._kube.delete(resource, name_of(obj), namespace_of(obj) or None, uid=uid_of(obj))
        except NotFound:
            return

    async def _finish_owner(self, resource: Resource, owner: Json) -> None:
        """The two finalizers by which a deletion waits for this collector."""
        finalizers = owner["metadata"].get("finalizers") or []
        if ORPHAN in finalizers:
            for dependent_of, dependent in self._dependents(owner):
                references = without_owners(dependent, [uid_of(owner)])
                metadata = {"ownerReferences": references}
                await self._kube.patch(
                    dependent_of, name_of(dependent), {"metadata": metadata}, namespace_of(dependent) or None
                )
            await self._drop_finalizer(resource, owner, ORPHAN)
        elif FOREGROUND in finalizers:
            dependents = self._dependents(owner)
            for dependent_of, dependent in dependents:
                if not is_terminating(dependent):
                    await self._let_go(dependent_of, dependent, owner)
            if not any(_blocks(dependent, owner) for _, dependent in dependents):
                await self._drop_finalizer(resource, owner, FOREGROUND)

    async def _let_go(self, resource: Resource, obj: Json, owner: Json) -> None:
        """All dependents of an owner that is deleted in the foreground go with it, those that do not hold it up too;
        one that has another owner left only loses this one."""
        if any(self._stays(str(r["uid"])) for r in owner_references(obj)):
            metadata = {"ownerReferences": without_owners(obj, [uid_of(owner)])}
            await self._kube.patch(resource, name_of(obj), {"metadata": metadata}, namespace_of(obj) or None)
        else:
            await self._delete_in_foreground(resource, obj)

    def _stays(self, uid: str) -> bool:
        place = self._owners.place_of(uid)
        found = None if place is None else self._caches[place[0]].objects.get((place[1], place[2]))
        return found is not None and FOREGROUND not in (found["metadata"].get("finalizers") or [])

    async def _delete_in_foreground(self, resource: Resource, obj: Json) -> None:
        """What has dependents itself waits for them in turn."""
        if self._owners.owned_by(uid_of(obj)):
            finalizers = [*(obj["metadata"].get("finalizers") or []), FOREGROUND]
            metadata = {"finalizers": finalizers, "resourceVersion": obj["metadata"]["resourceVersion"]}
            await self._kube.patch(resource, name_of(obj), {"metadata": metadata}, namespace_of(obj) or None)
        await self._delete(resource, obj)

    def _dependents(self, owner: Json) -> list[tuple[Resource, Json]]:
        found = []
        for resource, namespace, name in self._owners.owned_by(uid_of(owner)):
            obj = self._caches[resource].objects.get((namespace, name))
            if obj is not None:
                found.append((resource, obj))
        return found

    async def _drop_finalizer(self, resource: Resource, owner: Json, finalizer: str) -> None:
        left = [f for f in owner["metadata"]["finalizers"] if f != finalizer]
        metadata = {"finalizers": left, "resourceVersion": owner["metadata"]["resourceVersion"]}
        try:
            await self._kube.patch(resource, name_of(owner), {"metadata": metadata}, namespace_of(owner) or None)
        except NotFound:
            return

    async def _collect_pods(self) -> None:
        while True:
            await asyncio.sleep(self._timing.clock_s(POD_PASS_S))
            pods = sorted_by_name(self._caches[POD].values())
            for pod in [*self._orphaned(pods), *(p for p in pods if is_terminating(p) and not node_of(p))]:
                try:
                    await self._remove_pod(pod)
                except (ApiError, ConnectionError):
                    continue  # the next pass finds it again

    def _orphaned(self, pods: Sequence[Json]) -> list[Json]:
        """Pods whose node has been missing for the quarantine: a node may register again at once."""
        nodes = {name for _, name in self._caches[NODE].objects}
        now_s = asyncio.get_running_loop().time()
        missing = {node_of(p) for p in pods if node_of(p) and node_of(p) not in nodes}
        self._missing_since = {name: self._missing_since.get(name, now_s) for name in sorted(missing)}
        due_s = now_s - self._timing.clock_s(QUARANTINE_S) + 1e-9
        lost = {name for name, since_s in self._missing_since.items() if since_s <= due_s}
        return [p for p in pods if node_of(p) in lost]

    async def _remove_pod(self, pod: Json) -> None:
        """By force: there is no kubelet that could confirm the end. A pod that had not ended ends as Failed."""
        try:
            if node_of(pod) and not is_terminal(pod):
                patch = disruption_patch(pod, "DeletionByPodGC", "PodGC: node no longer exists", self._stamp())
                patch["status"]["phase"] = "Failed"
                await self._kube.patch(
                    POD, name_of(pod), patch, namespace_of(pod), type=PatchType.STRATEGIC, subresource="status"
                )
            await self._kube.delete(POD, name_of(pod), namespace_of(pod), grace_s=0, uid=uid_of(pod))
        except NotFound:
            return

    def _stamp(self) -> str | None:
        return self._wall.stamp() if self._wall is not None else None


def _owners_changed(new: Json, old: Json | None) -> bool:
    return old is None or owner_references(new) != owner_references(old)


def _blocks(dependent: Json, owner: Json) -> bool:
    return any(r["uid"] == uid_of(owner) and r.get("blockOwnerDeletion") for r in owner_references(dependent))
