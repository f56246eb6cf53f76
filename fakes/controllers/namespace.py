"""Empties namespaces that are being deleted, and lets them go once nothing is left.

As kubernetes v1.37 pkg/controller/namespace: five seconds after a terminating namespace was last seen to change, its
pods are deleted, when they are gone everything else, and then the finalizer ``kubernetes`` is taken off. What remains,
and what holds it, stands in the namespace's conditions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from fakes.clock import WallClock, parse_stamp
from fakes.controllers.controller import Reconciler, run_controller
from fakes.controllers.informer import Informer
from fakes.controllers.objects import condition_of, is_terminal, is_terminating, merged, name_of, with_condition
from fakes.timing import Timing
from harness.kube import port
from harness.kube.port import NAMESPACE, POD, EventType, Json, Kube, NotFound, Resource

FINALIZER = "kubernetes"
SETTLE_S = 5.0
"""Scenario seconds between a change of a terminating namespace and the next look at it."""
FINALIZERS_S = 15
"""So long something with a finalizer is expected to take."""

_DEFINITIONS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False)
_FINE = (
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    ("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions",
     "All legacy kube types successfully parsed"),
    ("NamespaceDeletionContentFailure", "ContentDeleted",
     "All content successfully deleted, may be waiting on finalization"),
    ("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"),
    ("NamespaceFinalizersRemaining", "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
)  # fmt: skip


@dataclass(slots=True)
class _Left:
    """What deleting everything has left so far. ``wait_s``: how long that may take, in seconds of the namespace."""

    wait_s: int = 0
    objects: Counter[Resource] = field(default_factory=Counter)
    finalizers: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)

    def conditions(self, *, counted: bool) -> dict[str, tuple[str, str]]:
        """Of those that are not fine: reason and message. While pods remain nothing is ``counted`` yet."""
        found: dict[str, tuple[str, str]] = {}
        if self.errors:
            said = ", ".join(sorted(self.errors))
            why = f"Failed to delete all resource types, {len(self.errors)} remaining: {said}"
            found["NamespaceDeletionContentFailure"] = ("ContentDeletionFailed", why)
        if counted and self.objects:
            parts = sorted(f"{r.plural}.{r.group} has {n} resource instances" for r, n in self.objects.items())
            why = f"Some resources are remaining: {', '.join(parts)}"
            found["NamespaceContentRemaining"] = ("SomeResourcesRemain", why)
        if counted and self.finalizers:
            parts = sorted(f"{name} in {n} resource instances" for name, n in self.finalizers.items())
            why = f"Some content in the namespace has finalizers remaining: {', '.join(parts)}"
            found["NamespaceFinalizersRemaining"] = ("SomeFinalizersRemain", why)
        return found


class NamespaceController:
    def __init__(self, kube: Kube, wall: WallClock, timing: Timing | None = None) -> None:
        self._kube = kube
        self._wall = wall
        self._timing = timing or Timing()
        self._namespaces = Informer(kube, NAMESPACE)
        self._loop: Reconciler[str] = Reconciler(self._sync)
        self._namespaces.on_change(self._changed)

    async def run(self) -> None:
        await run_controller((self._namespaces,), self._loop.run)

    def _changed(self, type: EventType, new: Json, old: Json | None) -> None:
        if type is not EventType.DELETED and is_terminating(new):
            self._loop.queue.add_after(name_of(new), self._timing.clock_s(SETTLE_S))

    async def _sync(self, name: str) -> None:
        try:
            await self._empty(await self._kube.get(NAMESPACE, name))
        except NotFound:
            return  # gone in the meantime

    async def _empty(self, namespace: Json) -> None:
        if not is_terminating(namespace) or not namespace["spec"].get("finalizers"):
            return
        name, left = name_of(namespace), _Left()
        await self._delete_all(POD, namespace, left)
        pods_first = left.objects[POD] > 0
        if not pods_first:
            del left.objects[POD]
            for resource in await self._resources():
                await self._delete_all(resource, namespace, left)
        namespace = await self._told(namespace, left.conditions(counted=not pods_first))
        if left.errors:
            self._loop.queue.add_after(name, self._timing.clock_s(1.0))
        elif left.wait_s > 0:
            self._loop.queue.add_after(name, self._timing.clock_s(left.wait_s // 2 + 1))
        else:
            kept = [f for f in namespace["spec"]["finalizers"] if f != FINALIZER]
            done = merged(namespace, spec=merged(namespace["spec"], finalizers=kept))
            await self._kube.update(NAMESPACE, done, subresource="finalize")

    async def _told(self, namespace: Json, wrong: dict[str, tuple[str, str]]) -> Json:
        """With its conditions as they are now."""
        conditions: Sequence[Json] = (namespace.get("status") or {}).get("conditions") or []
        for type, reason, message in _FINE:
            status = "True" if type in wrong else "False"
            reason, message = wrong.get(type, (reason, message))
            new = {"type": type, "status": status, "reason": reason, "message": message}
            old = condition_of({"status": {"conditions": conditions}}, type)
            if old is None or any(old.get(key) != value for key, value in new.items()):
                conditions = with_condition(conditions, new, self._wall.stamp())
        status_ = merged(namespace.get("status") or {}, conditions=conditions)
        if status_ == namespace.get("status"):
            return namespace
        return await self._kube.update(NAMESPACE, merged(namespace, status=status_), subresource="status")

    async def _resources(self) -> list[Resource]:
        """All namespaced ones but pods, those of CustomResourceDefinitions among them."""
        found = [r for r in port.RESOURCES if r.namespaced and r != POD]
        known = {(r.group, r.plural) for r in found}
        for crd in (await self._kube.list(_DEFINITIONS)).items:
            spec = crd["spec"]
            version = next((v["name"] for v in spec["versions"] if v.get("storage")), None)
            place = (spec["group"], spec["names"]["plural"])
            if spec["scope"] == "Namespaced" and version is not None and place not in known:
                found.append(Resource(*place[:1], version, place[1], spec["names"]["kind"], True))
        return found

    async def _delete_all(self, resource: Resource, namespace: Json, left: _Left) -> None:
        name = name_of(namespace)
        before = await self._list(resource, name)
        wait_s = self._grace_s(before, namespace) if resource == POD else 0
        for obj in before:
            if not is_terminating(obj):
                try:
                    await self._kube.delete(resource, name_of(obj), name, propagation="Background")
                except NotFound:
                    continue
        after = await self._list(resource, name) if before else ()
        if not after:
            return
        held = Counter(f for obj in after for f in obj["metadata"].get("finalizers") or ())
        left.objects[resource] = len(after)
        left.finalizers += held
        if not wait_s and held:
            wait_s = FINALIZERS_S
        elif not wait_s:
            what = f"{resource.group}/{resource.version}, Resource={resource.plural}"
            said = f"unexpected items still remain in namespace: {name} for gvr: {what}"
            left.errors.append(said)
        left.wait_s = max(left.wait_s, wait_s)

    async def _list(self, resource: Resource, namespace: str) -> tuple[Json, ...]:
        try:
            return (await self._kube.list(resource, namespace)).items
        except NotFound:
            return ()  # a kind that this cluster does not serve

    def _grace_s(self, pods: Sequence[Json], namespace: Json) -> int:
        """The longest grace of those pods, or nothing where it should be over by now."""
        graces = [int(p["spec"].get("terminationGracePeriodSeconds") or 0) for p in pods if not is_terminal(p)]
        longest = max(graces, default=0)
        since = parse_stamp(namespace["metadata"]["deletionTimestamp"])
        return 0 if (self._wall.now() - since).total_seconds() >= self._timing.clock_s(longest) else longest
