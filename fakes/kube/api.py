"""The rules of the Kubernetes API on top of the store: get, list, create, update and patch.

Both doors lead here: ``LocalKube`` in process and the HTTP server. All methods are synchronous and atomic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fakes.kube.admission import admit_pod, check_namespace
from fakes.kube.bootstrap import default_account, new_uid
from fakes.kube.codec import ingest
from fakes.kube.defaults import keep_allocated, set_defaults
from fakes.kube.deletion import Deleter, is_finished
from fakes.kube.kinds import KINDS, Kind
from fakes.kube.metadata import born, bump_generation, carried, manage, placed, typed
from fakes.kube.patch import json_patch, merge_patch, strategic_patch
from fakes.kube.selectors import Predicate, field_predicate, label_predicate
from fakes.kube.status import (
    already_exists,
    bad_request,
    bad_value,
    invalid,
    no_such_path,
    not_found,
    unsupported_media_type,
)
from fakes.kube.store import Store, Stored
from fakes.kube.structure import check_structure
from fakes.kube.validate import validate, validate_change
from harness.kube import port
from harness.kube.port import Json, PatchType, Resource


@dataclass(frozen=True, slots=True)
class Write:
    """Who writes, and whether for real."""

    manager: str = ""
    dry_run: bool = False
    operation: str = "Update"


def kind_for(resource: Resource) -> Kind:
    found = KINDS.get((resource.group, resource.plural))
    if found is None or found.resource.version != resource.version:
        raise no_such_path()
    return found


def both(first: Predicate | None, second: Predicate | None) -> Predicate | None:
    if first is None or second is None:
        return first or second
    return lambda obj: first(obj) and second(obj)


class Api:
    """One per store and door; it holds no state of its own."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.deleter = Deleter(store)

    def get(self, resource: Resource, namespace: str | None, name: str) -> Stored:
        kind_for(resource)
        found = self.store.find(resource, (namespace or "") if resource.namespaced else "", name)
        if found is None:
            raise not_found(resource, name)
        return found

    def predicate(self, resource: Resource, label_selector: str, field_selector: str) -> Predicate | None:
        kind_for(resource)
        return both(label_predicate(label_selector), field_predicate(resource, field_selector))

    def list(self, resource: Resource, namespace: str | None, match: Predicate | None) -> list[Stored]:
        kind_for(resource)
        found = self.store.items(resource, namespace if resource.namespaced else None)
        return [s for s in found if match is None or match(s.object)]

    def create(self, resource: Resource, namespace: str | None, body: Any, write: Write) -> Stored:
        kind = kind_for(resource)
        obj = self._ingested(resource, body)
        where = placed(resource, obj, namespace)
        born(self.store, kind, obj)
        name = obj["metadata"]["name"]
        check_namespace(self.store, resource, where, name)
        if kind.status and not kind.status_on_create:
            obj.pop("status", None)
        set_defaults(obj, self.store.rng)
        if resource == port.POD:
            admit_pod(self.store, obj)
        if causes := validate(obj):
            raise invalid(resource, name, causes)
        if self.store.find(resource, where, name) is not None:
            raise already_exists(resource, name)
        manage(obj["metadata"], write.manager, write.operation, resource.api_version, None, self.store.wall.stamp())
        if write.dry_run:
            return Stored(obj, self.store.revision)
        stored = self.store.put(resource, obj)
        if resource == port.NAMESPACE:
            self._furnish(name)
        return stored

    def update(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        body: Any,
        write: Write,
        subresource: str | None = None,
    ) -> Stored:
        kind = kind_for(resource)
        old = self.get(resource, namespace, name)
        obj = self._ingested(resource, body)
        placed(resource, obj, namespace)
        if not obj["metadata"].get("name"):
            raise bad_request("the name of the object must be set in the body of an update")
        if not kind.unconditional_update and not obj["metadata"].get("resourceVersion"):
            cause = bad_value("metadata.resourceVersion", 0, "must be specified for an update")
            raise invalid(resource, name, [cause])
        return self._replace(kind, old, obj, write, subresource)

    def patch(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        body: Any,
        type: PatchType,
        write: Write,
        subresource: str | None = None,
    ) -> Stored:
        kind = kind_for(resource)
        old = self.get(resource, namespace, name)
        obj = self._ingested(resource, self.patched(kind, old.object, body, type))
        placed(resource, obj, namespace)
        obj["metadata"].setdefault("name", name)
        return self._replace(kind, old, obj, write, subresource)

    def patched(self, kind: Kind, target: Json, body: Any, type: PatchType) -> Any:
        if type is PatchType.JSON:
            if not isinstance(body, list):
                raise bad_request("error decoding patch: a JSON patch is a list of operations")
            return json_patch(target, body)
        if not isinstance(body, dict):
            raise bad_request("error decoding patch: a merge patch is an object")
        if type is PatchType.MERGE:
            return merge_patch(target, body)
        if kind.custom:
            raise unsupported_media_type([PatchType.JSON, PatchType.MERGE, "application/apply-patch+yaml"])
        return strategic_patch(target, body, kind.resource.kind)

    def commit(self, kind: Kind, old: Stored, new: Json, write: Write, subresource: str | None) -> Stored:
        """Stores a new version; one that says nothing new is no revision, one that ends a deletion removes."""
        if _same(new, old.object):
            return old
        stamp = self.store.wall.stamp()
        manage(new["metadata"], write.manager, write.operation, kind.resource.api_version, subresource, stamp)
        if write.dry_run:
            return Stored(new, old.version)
        if is_finished(new):
            return self.deleter.remove(kind.resource, new)
        return self.store.put(kind.resource, new)

    def _replace(self, kind: Kind, old: Stored, new: Json, write: Write, subresource: str | None) -> Stored:
        if subresource == "status" and not kind.status:
            raise no_such_path()
        carried(kind, new, old.object)
        if subresource == "status":
            new = _status_only(kind, new, old.object)
        elif kind.status:
            new.pop("status", None)
            if "status" in old.object:
                new["status"] = dict(old.object["status"])  # a copy, for defaulting may add to it
        if subresource != "status":
            keep_allocated(new, old.object)
            set_defaults(new, self.store.rng)
            name = new["metadata"]["name"]
            if causes := validate(new) + validate_change(new, old.object):
                raise invalid(kind.resource, name, causes)
            bump_generation(kind, new, old.object)
        return self.commit(kind, old, new, write, subresource)

    def _ingested(self, resource: Resource, body: Any) -> Json:
        if not isinstance(body, dict):
            raise bad_request(f"the body is no {resource.kind}: a JSON object is needed")
        obj: Json = ingest(body)
        typed(resource, obj)
        check_structure(obj)
        return obj

    def _furnish(self, namespace: str) -> None:
        """On a real cluster the service account controller does this a moment later."""
        meta = {"name": "default", "namespace": namespace, "uid": new_uid(self.store.rng)}
        meta["creationTimestamp"] = self.store.wall.stamp()
        self.store.put(port.SERVICE_ACCOUNT, default_account(meta))


def _same(new: Json, old: Json) -> bool:
    ours = {"metadata": {k: v for k, v in new["metadata"].items() if k != "managedFields"}}
    theirs = {"metadata": {k: v for k, v in old["metadata"].items() if k != "managedFields"}}
    return bool(new | ours == old | theirs)


def _status_only(kind: Kind, new: Json, old: Json) -> Json:
    """The old object with the new status, and the new labels and annotations where the kind allows that."""
    found = {k: v for k, v in old.items() if k != "status"}
    found["metadata"] = dict(old["metadata"])
    if kind.metadata_by_status:
        for field in ("labels", "annotations"):
            found["metadata"].pop(field, None)
            if new["metadata"].get(field):
                found["metadata"][field] = new["metadata"][field]
    found["status"] = new.get("status", {})
    return found
