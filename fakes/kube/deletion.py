"""Deletion: at once, gracefully for pods, in steps where there are finalizers.

A namespace is only marked; who empties it is the namespace controller.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from fakes.clock import parse_stamp, stamp
from fakes.config import PlantedBug
from fakes.kube import crds
from fakes.kube.admission import GROUP_PROTECTION
from fakes.kube.delete_options import DeleteOptions
from fakes.kube.metadata import check_preconditions
from fakes.kube.status import forbidden
from fakes.kube.store import Store, Stored
from harness.kube import port
from harness.kube.port import Json, Resource

_PROPAGATION_FINALIZERS = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}
_KEPT_NAMESPACES = frozenset({"default", "kube-system", "kube-public"})


@dataclass(frozen=True, slots=True)
class Deleted:
    """``gone``: the object is no more; else it stays, marked, until its node agent or its finalizers are done."""

    last: Stored
    gone: bool


def group_of(pod: Json) -> str | None:
    """The PodGroup that a pod belongs to."""
    name = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName")
    return str(name) if name else None


def is_finished(obj: Json) -> bool:
    """A deleted object whom nothing holds any longer."""
    meta = obj["metadata"]
    if not meta.get("deletionTimestamp") or meta.get("finalizers"):
        return False
    if obj["kind"] == "Namespace":
        return not (obj.get("spec") or {}).get("finalizers")
    return not meta.get("deletionGracePeriodSeconds")


class Deleter:
    def __init__(self, store: Store) -> None:
        self._store = store

    def delete(self, resource: Resource, old: Stored, options: DeleteOptions) -> Deleted:
        meta = old.object["metadata"]
        check_preconditions(resource, meta, meta["name"], options.uid, options.version)
        if resource == port.POD_GROUP and PlantedBug.DELETION_REFUSED in self._store.bugs:
            raise forbidden(resource, meta["name"], "an admission webhook lets nobody delete this")
        if resource == port.NAMESPACE:
            return self._delete_namespace(old, options)
        grace_s = self._grace_s(resource, old.object, options)
        finalizers = _finalizers(meta, options)
        gone = grace_s == 0 and not finalizers
        if options.dry_run:
            return Deleted(old, gone)
        if gone and resource != port.POD:
            return Deleted(self.remove(resource, old.object), True)
        marked = self._marked(old.object, grace_s, finalizers)
        if marked != old.object:
            # Watchers of a pod see it marked even where it goes at once, as on a real cluster.
            old = self._store.put(resource, marked)
        if resource == port.POD_GROUP:
            self._finish_group(old.object["metadata"]["namespace"], old.object["metadata"]["name"])
        return Deleted(self.remove(resource, old.object), True) if gone else Deleted(old, False)

    def remove(self, resource: Resource, obj: Json) -> Stored:
        last = self._store.remove(resource, obj)
        if resource == crds.RESOURCE:
            crds.withdraw(self._store, obj)
        if resource == port.POD and (group := group_of(obj)):
            self._finish_group(obj["metadata"]["namespace"], group)
        return last

    def _finish_group(self, namespace: str, name: str) -> None:
        """What the protection controller does: a PodGroup that is being deleted goes with the last of its pods."""
        found = self._store.find(port.POD_GROUP, namespace, name)
        if found is None or not found.object["metadata"].get("deletionTimestamp"):
            return
        finalizers = found.object["metadata"].get("finalizers") or []
        if GROUP_PROTECTION not in finalizers:
            return
        pods = (s.object for s in self._store.items(port.POD, namespace))
        if any(group_of(p) == name and p["status"].get("phase") not in ("Succeeded", "Failed") for p in pods):
            return
        left = [f for f in finalizers if f != GROUP_PROTECTION]
        meta = {k: v for k, v in found.object["metadata"].items() if k != "finalizers"}
        if left:
            self._store.put(port.POD_GROUP, found.object | {"metadata": meta | {"finalizers": left}})
        else:
            self.remove(port.POD_GROUP, found.object)

    def _grace_s(self, resource: Resource, obj: Json, options: DeleteOptions) -> int:
        """Only pods that run somewhere are deleted gracefully."""
        if resource != port.POD:
            return 0
        grace_s = options.grace_s
        if grace_s is None:
            grace_s = obj["spec"].get("terminationGracePeriodSeconds", 30)
        if not obj["spec"].get("nodeName") or obj["status"].get("phase") in ("Succeeded", "Failed"):
            return 0
        grace_s = max(1, grace_s) if grace_s < 0 else grace_s
        already_s = obj["metadata"].get("deletionGracePeriodSeconds")
        # A second delete can only shorten the grace that runs.
        return grace_s if already_s is None else min(grace_s, int(already_s))

    def _marked(self, obj: Json, grace_s: int, finalizers: list[str]) -> Json:
        meta = dict(obj["metadata"])
        already = meta.get("deletionTimestamp")
        if not already:
            when = self._store.wall.now() + timedelta(seconds=grace_s)
            if "generation" in meta:
                meta["generation"] += 1
        else:
            when = parse_stamp(already) - timedelta(seconds=int(meta.get("deletionGracePeriodSeconds", 0)) - grace_s)
        meta |= {"deletionTimestamp": stamp(when), "deletionGracePeriodSeconds": grace_s}
        if finalizers:
            meta["finalizers"] = finalizers
        return obj | {"metadata": meta}

    def _delete_namespace(self, old: Stored, options: DeleteOptions) -> Deleted:
        name = old.object["metadata"]["name"]
        if name in _KEPT_NAMESPACES:
            raise forbidden(port.NAMESPACE, name, "this namespace may not be deleted")
        if options.dry_run or old.object["metadata"].get("deletionTimestamp"):
            return Deleted(old, False)
        marked = self._marked(old.object, 0, _finalizers(old.object["metadata"], options))
        del marked["metadata"]["deletionGracePeriodSeconds"]
        status = (old.object.get("status") or {}) | {"phase": "Terminating"}
        last = self._store.put(port.NAMESPACE, marked | {"status": status})
        if is_finished(last.object):
            return Deleted(self.remove(port.NAMESPACE, last.object), True)
        return Deleted(last, False)


def _finalizers(meta: Json, options: DeleteOptions) -> list[str]:
    """A policy that is stated wins over the one that an earlier delete left."""
    present = list(meta.get("finalizers") or [])
    wanted = _PROPAGATION_FINALIZERS.get(options.propagation) if options.propagation else None
    kept = [f for f in present if f not in _PROPAGATION_FINALIZERS.values()]
    if options.propagation is None:
        return present
    return [*kept, wanted] if wanted else kept
