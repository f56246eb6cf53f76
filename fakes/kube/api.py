"""The rules of the Kubernetes API on top of the store: get, list, create, update and patch.

Both doors lead here: ``LocalKube`` in process and the HTTP server. All methods are synchronous and atomic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fakes.kube import crds
from fakes.kube.admission import admit, check_namespace, default_tolerations
from fakes.kube.apply import Applied, applied
from fakes.kube.bootstrap import furniture
from fakes.kube.defaults import prepare_change, prepare_new, set_defaults, set_status_defaults
from fakes.kube.deletion import Deleter, is_finished
from fakes.kube.kinds import Kind, View
from fakes.kube.metadata import born, bump_generation, carried, placed, typed
from fakes.kube.ownership import Writer, track
from fakes.kube.patch import json_patch, merge_patch, not_a_map, strategic_patch
from fakes.kube.reading import check_custom, read_body_as, read_patched, unreadable_patch
from fakes.kube.schema.model import NOTHING
from fakes.kube.selectors import Predicate, field_predicate, label_predicate
from fakes.kube.status import (
    already_exists,
    bad_request,
    invalid,
    no_such_path,
    not_found,
    unsupported_media_type,
    version_required,
)
from fakes.kube.store import Store, Stored
from fakes.kube.validation import validate, validate_change, warnings_of
from harness.kube import port
from harness.kube.port import Json, PatchType, Resource


@dataclass(frozen=True, slots=True)
class Write:
    """Who writes, and whether for real. ``validation`` says what becomes of fields that the kind does not have:
    Ignore, Warn (then they are told in ``warnings``) or Strict."""

    manager: str = ""
    dry_run: bool = False
    operation: str = "Update"
    validation: str = "Ignore"
    warnings: list[str] = field(default_factory=list)


def both(first: Predicate | None, second: Predicate | None) -> Predicate | None:
    if first is None or second is None:
        return first or second
    return lambda obj: first(obj) and second(obj)


class Api:
    """One per store and door; it holds no state of its own."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.deleter = Deleter(store)

    def kind(self, resource: Resource) -> Kind:
        found = self.store.kinds.find(resource)
        if found is None:
            raise no_such_path()
        return found

    def get(self, resource: Resource, namespace: str | None, name: str) -> Stored:
        self.kind(resource)
        found = self.store.find(resource, (namespace or "") if resource.namespaced else "", name)
        if found is None:
            raise not_found(resource, name)
        return found

    def predicate(self, resource: Resource, label_selector: str, field_selector: str) -> Predicate | None:
        kind = self.kind(resource)
        return both(label_predicate(label_selector), field_predicate(kind, field_selector))

    def list(self, resource: Resource, namespace: str | None, match: Predicate | None) -> Sequence[Stored]:
        self.kind(resource)
        found = self.store.items(resource, namespace if resource.namespaced else None)
        return found if match is None else [s for s in found if match(s.object)]

    def create(self, resource: Resource, namespace: str | None, body: Any, write: Write) -> Stored:
        kind = self.kind(resource)
        if kind.custom:
            check_custom(kind, body)
        obj = read_body_as(kind, body, write.validation, write.warnings)
        return self._create(kind, namespace, obj, write)

    def _create(self, kind: Kind, namespace: str | None, obj: Json, write: Write) -> Stored:
        base, resource = self.store.kinds.base(kind), kind.resource
        typed(self.store.kinds, resource, obj)
        where = placed(resource, obj, namespace)
        born(self.store, kind, obj)
        name = obj["metadata"]["name"]
        set_defaults(obj)
        stamp = self.store.wall.stamp()
        if write.operation != "Apply":  # an apply has brought its entry along
            track(kind, None, obj, self._writer(kind, write), stamp)
        if kind.view:
            obj = _inward(kind.view, base, obj)
        check_namespace(self.store, resource, where, name)
        admit(self.store, base, obj)
        prepare_new(base, obj, self.store)
        if causes := validate(obj):
            raise invalid(resource, name, causes)
        if (there := self.store.find(resource, where, name)) is not None:
            raise already_exists(resource, name, ending="deletionTimestamp" in there.object["metadata"])
        if write.validation != "Ignore":
            write.warnings.extend(warnings_of(obj))
        if write.dry_run:
            return Stored(obj, 0)
        stored = self.store.put(base.resource, obj)
        self._follow(base, stored.object)
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
        kind = self.kind(resource)
        live = self.store.find(resource, (namespace or "") if resource.namespaced else "", name)
        before = NOTHING if live is None or kind.view else live.object
        obj = read_body_as(kind, body, write.validation, write.warnings, before)
        if _forgets(body):
            obj["metadata"]["managedFields"] = [{}]
        typed(self.store.kinds, resource, obj)
        placed(resource, obj, namespace)
        stated = obj["metadata"].get("name")
        if not stated:
            raise bad_request(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
        if stated != name:
            raise bad_request(f"the name of the object ({stated}) does not match the name on the URL ({name})")
        if kind.create_on_update and not subresource and not self.exists(resource, namespace, name):
            return self._create(kind, namespace, obj, write)
        old = self.get(resource, namespace, name)
        if not kind.unconditional_update and not obj["metadata"].get("resourceVersion"):
            raise version_required(resource, name)
        return self._replace(kind, old, obj, write, subresource, patched=False)

    def exists(self, resource: Resource, namespace: str | None, name: str) -> bool:
        return self.store.find(resource, (namespace or "") if resource.namespaced else "", name) is not None

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
        kind = self.kind(resource)
        old = self.get(resource, namespace, name)
        live = self.outward(kind, old.object)
        changed = self.patched(kind, live, body, type)
        strategic = body if type is PatchType.STRATEGIC else None
        obj = read_patched(kind, live, changed, write.validation, write.warnings, strategic)
        if (obj.get("kind"), obj.get("apiVersion")) != (live["kind"], live["apiVersion"]):
            raise unreadable_patch(changed, f"a {live['kind']} stays one")
        if _forgets(changed):
            obj["metadata"]["managedFields"] = [{}]
        typed(self.store.kinds, resource, obj)
        placed(resource, obj, namespace)
        obj["metadata"].setdefault("name", name)
        return self._replace(kind, old, obj, write, subresource)

    def apply(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        body: Any,
        write: Write,
        subresource: str | None = None,
        *,
        force: bool = False,
    ) -> tuple[Stored, bool]:
        """Server-side apply: the object, and whether it was created. ``write.operation`` is Apply."""
        kind = self.kind(resource)
        where = (namespace or "") if resource.namespaced else ""
        old = self.store.find(resource, where, name)
        live = self.outward(kind, old.object) if old else None
        if old is None and subresource:
            raise not_found(resource, name)
        stamp = self.store.wall.stamp()
        _check_name(body, name)
        found: Applied = applied(kind, live, body, self._writer(kind, write, subresource), stamp, force)
        write.warnings.extend(found.warnings)
        obj = found.object
        if old is None:
            obj["metadata"].setdefault("name", name)
            obj["metadata"].pop("resourceVersion", None)
            return self._create(kind, namespace, obj, write), True
        if found.unchanged:
            return old, False
        typed(self.store.kinds, resource, obj)
        placed(resource, obj, namespace)
        return self._replace(kind, old, obj, write, subresource), False

    def outward(self, kind: Kind, obj: Json) -> Json:
        return kind.view.outward(obj) if kind.view else obj

    def patched(self, kind: Kind, target: Json, body: Any, type: PatchType) -> Any:
        if type is PatchType.JSON:
            return json_patch(target, body)
        if not isinstance(body, dict):
            raise not_a_map(body, type)
        if type is PatchType.MERGE:
            return merge_patch(target, body)
        if kind.custom:
            raise unsupported_media_type([PatchType.JSON, PatchType.MERGE, "application/apply-patch+yaml"])
        return strategic_patch(target, body, kind.type)

    def commit(self, kind: Kind, old: Stored, new: Json, write: Write) -> Stored:
        """Stores a new version; one that says nothing new is no revision, one that ends a deletion removes."""
        if _same(new, old.object):
            return old
        if write.dry_run:
            return Stored(new, old.version)
        if is_finished(new):
            # Watchers see the last stored state go; the writer sees what it wrote, which was never stored.
            self.deleter.remove(kind.resource, old.object)
            return Stored(new, old.version)
        stored = self.store.put(kind.resource, new)
        self._follow(kind, stored.object)
        return stored

    def _replace(
        self, kind: Kind, old: Stored, new: Json, write: Write, subresource: str | None, *, patched: bool = True
    ) -> Stored:
        if subresource == "status" and not kind.status:
            raise no_such_path()
        base = self.store.kinds.base(kind)
        if subresource == "status" and not kind.view:
            set_status_defaults(new)
        else:
            set_defaults(new)
        if write.operation != "Apply":
            live = self.outward(kind, old.object)
            track(kind, live, new, self._writer(kind, write, subresource), self.store.wall.stamp())
        if kind.view:
            new = _inward(kind.view, base, new)
        carried(kind, new, old.object, patched=patched)
        if subresource == "status":
            new = _status_only(kind, new, old.object)
        elif base.status:
            _status_kept(new, old.object)
        prepare_change(base, new, old.object, subresource)
        if base.resource == port.POD and subresource is None and new["spec"] is not old.object["spec"]:
            default_tolerations(new["spec"])
        name = new["metadata"]["name"]
        causes = validate_change(new, old.object, subresource)
        if subresource != "status" and new.get("spec") is not old.object.get("spec", _ABSENT):
            causes = validate(new) + causes
        if causes:
            raise invalid(kind.resource, name, causes)
        if subresource != "status":
            bump_generation(base, new, old.object)
        return self.commit(base, old, new, write)

    def _writer(self, kind: Kind, write: Write, subresource: str | None = None) -> Writer:
        return Writer(write.manager or "unknown", write.operation, kind.resource.api_version, subresource or "")

    def _follow(self, kind: Kind, obj: Json) -> None:
        """What the store does on its own once an object is there."""
        if kind.resource == port.NAMESPACE and "deletionTimestamp" not in obj["metadata"]:
            for resource, item in furniture(self.store.wall, self.store.rng, obj["metadata"]["name"]):
                if self.store.find(resource, item["metadata"]["namespace"], item["metadata"]["name"]) is None:
                    self.store.put(resource, item)
        elif kind.resource == crds.RESOURCE:
            crds.serve(self.store, obj)


_ABSENT: Any = object()


def _inward(view: View, base: Kind, obj: Json) -> Json:
    """From a second shape into the stored one, complete as the stored kind is."""
    found: Json = base.type.read(view.inward(obj))
    set_defaults(found)
    return found


def _check_name(body: Any, name: str) -> None:
    meta = body.get("metadata") if isinstance(body, dict) else None
    stated = meta.get("name", name) if isinstance(meta, dict) else name
    if stated != name:
        raise bad_request(f"the name of the object ({stated}) does not match the name on the URL ({name})")


def _forgets(body: Any) -> bool:
    """An empty list of managedFields, which reading takes for none at all, says that nobody owns anything."""
    meta = body.get("metadata") if isinstance(body, dict) else None
    return isinstance(meta, dict) and meta.get("managedFields") == []


def _same(new: Json, old: Json) -> bool:
    if new.keys() != old.keys():
        return False
    for key, value in new.items():
        if key != "metadata" and value is not old[key] and value != old[key]:
            return False
    ours, theirs = new["metadata"], old["metadata"]
    if {k: v for k, v in ours.items() if k != "managedFields"} != {
        k: v for k, v in theirs.items() if k != "managedFields"
    }:
        return False
    return _timeless(ours) == _timeless(theirs)


def _timeless(meta: Json) -> list[Json]:
    """Who owns what, whenever they wrote it: an update that changes no more than these times is none."""
    return [{k: v for k, v in e.items() if k != "time"} for e in meta.get("managedFields") or []]


def _status_kept(new: Json, old: Json) -> None:
    new.pop("status", None)
    if "status" in old:
        new["status"] = old["status"]


def _status_only(kind: Kind, new: Json, old: Json) -> Json:
    """The old object with the new status, and of the new metadata what the kind lets a status update change."""
    found = {k: v for k, v in old.items() if k != "status"}
    hidden = kind.reset_by_status.get("f:metadata")
    if hidden is None or hidden:
        found["metadata"] = new["metadata"]
        for name in hidden or ():
            field = name.removeprefix("f:")
            found["metadata"].pop(field, None)
            if field in old["metadata"]:
                found["metadata"][field] = old["metadata"][field]
    else:
        found["metadata"] = dict(old["metadata"])
        found["metadata"].pop("managedFields", None)
        if "managedFields" in new["metadata"]:
            found["metadata"]["managedFields"] = new["metadata"]["managedFields"]
    if "status" in new:
        found["status"] = new["status"]
    return found
