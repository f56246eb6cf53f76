"""ObjectMeta: what the server writes into it and what a writer may not change."""

from __future__ import annotations

from fakes.kube.bootstrap import new_uid
from fakes.kube.defaults import random_suffix
from fakes.kube.kinds import Kind, Kinds
from fakes.kube.status import (
    bad_request,
    bad_value,
    conflict,
    forbidden_field,
    invalid,
    not_this_object,
    precondition_failed,
    required,
)
from fakes.kube.store import Store
from harness.kube.port import Json, Resource

_SERVER_OWNED = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "generation",
)
_ROOT_FIELDS = frozenset({"kind", "apiVersion", "metadata", "status"})
_GENERATED_MAX = 63 - 5


def typed(kinds: Kinds, resource: Resource, obj: Json) -> None:
    """Fills kind and apiVersion where a client left them out, as decoding by the URL does; refuses others."""
    kind = obj.get("kind") or resource.kind
    version = obj.get("apiVersion") or resource.api_version
    obj["kind"], obj["apiVersion"] = kind, version
    if (kind, version) != (resource.kind, resource.api_version):
        number = version.rpartition("/")[2]
        what = f'{kind} in version "{number}" cannot be handled as a {resource.kind}'
        if any(k.resource.kind == kind and k.resource.api_version == version for k in kinds.served.values()):
            group = resource.group.partition(".")[0] or "core"
            raise bad_request(f"{what}: converting (v1.{kind}) to ({group}.{resource.kind}): unknown conversion")
        scheme = 'in scheme "pkg/runtime/scheme.go:111"'
        raise bad_request(f'{what}: no kind "{kind}" is registered for version "{version}" {scheme}')


def placed(resource: Resource, obj: Json, namespace: str | None) -> str:
    """The namespace of the object (empty for cluster scope), written into it."""
    meta = obj["metadata"]
    if not resource.namespaced:
        meta.pop("namespace", None)
        return ""
    stated = meta.get("namespace")
    if namespace and stated and namespace != stated:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    found = namespace or stated
    if not found:
        raise bad_request("an empty namespace may not be set during creation")
    meta["namespace"] = found
    return str(found)


def born(store: Store, kind: Kind, obj: Json) -> None:
    """Metadata of a new object."""
    meta = obj["metadata"]
    if meta.get("resourceVersion"):
        raise bad_request("resourceVersion should not be set on objects to be created")
    for field in (*_SERVER_OWNED, "resourceVersion"):
        if field != "generation" or kind.generation:
            meta.pop(field, None)
    if not meta.get("name"):
        prefix = meta.get("generateName")
        if not prefix:
            cause = required("metadata.name", "name or generateName is required")
            raise invalid(kind.resource, "", [cause])
        meta["name"] = prefix[:_GENERATED_MAX] + random_suffix(store.rng)
    meta["uid"] = new_uid(store.rng)
    meta["creationTimestamp"] = store.wall.stamp()
    if kind.generation:
        meta["generation"] = 1


def check_preconditions(resource: Resource, meta: Json, name: str, uid: str | None, version: str | None) -> None:
    if uid and uid != meta["uid"]:
        raise precondition_failed(resource, name, "UID", uid, meta["uid"])
    if version and version != meta["resourceVersion"]:
        what = "ResourceVersion"
        raise precondition_failed(resource, name, what, version, meta["resourceVersion"])


def carried(kind: Kind, new: Json, old: Json, *, patched: bool) -> None:
    """Metadata of a new version: what belongs to the server is carried over from the old one."""
    meta, before = new["metadata"], old["metadata"]
    name = before["name"]
    if meta.get("name", name) != name:
        raise bad_request(f"the name of the object ({meta['name']}) does not match the name on the URL ({name})")
    if meta.get("uid", before["uid"]) != before["uid"]:
        if patched:
            raise invalid(kind.resource, name, [bad_value("metadata.uid", meta["uid"], "field is immutable")])
        raise not_this_object(kind.resource, before, meta["uid"])
    version = meta.get("resourceVersion")
    if version and version not in (before["resourceVersion"], "0"):
        raise conflict(kind.resource, name)
    for field in _SERVER_OWNED:
        meta.pop(field, None)
        if field in before:
            meta[field] = before[field]
    for field in ("name", "namespace", "resourceVersion", "generateName"):
        if field in before:
            meta[field] = before[field]
    if before.get("deletionTimestamp"):
        added = [f for f in meta.get("finalizers") or [] if f not in (before.get("finalizers") or [])]
        if added:
            listed = ", ".join(f'"{f}"' for f in added)
            detail = "no new finalizers can be added if the object is being deleted, "
            detail += f"found new finalizers []string{{{listed}}}"
            raise invalid(kind.resource, name, [forbidden_field("metadata.finalizers", detail)])


def bump_generation(kind: Kind, new: Json, old: Json) -> None:
    """One more when what is desired has changed, whatever became of metadata and status."""
    if not kind.generation:
        return
    ignored = _ROOT_FIELDS if kind.status or not kind.custom else _ROOT_FIELDS - {"status"}
    changed = any(new.get(f) != old.get(f) for f in (new.keys() | old.keys()) - ignored)
    if kind.resource.kind == "Deployment":
        changed = changed or new["metadata"].get("annotations") != old["metadata"].get("annotations")
    if changed:
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
