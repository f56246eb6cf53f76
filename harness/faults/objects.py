"""Objects that a run made, and the label by which they are known as its own."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from harness.errors import InternalError
from harness.faults.undo import ObjectRef
from harness.history.lives import RUN_LABEL as RUN_LABEL
from harness.kube.port import REAL_ONLY, RESOURCES, Conflict, Json, Kube, NotFound, Resource
from harness.stack.description import addons, kinds


def run_label(run_dir: Path) -> str:
    """A label value that names the run: readable, and unique by the folder's full path."""
    path = str(run_dir.resolve())
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", run_dir.resolve().name)[:40].strip("-._")
    return f"{stem or 'run'}-{hashlib.sha256(path.encode()).hexdigest()[:8]}"


def label_of(obj: Json) -> str | None:
    value = (obj["metadata"].get("labels") or {}).get(RUN_LABEL)
    return None if value is None else str(value)


def ref_of(resource: Resource, obj: Json) -> ObjectRef:
    return ObjectRef(resource.api_version, resource.kind, str(obj["metadata"]["name"]), namespace_of(resource, obj))


def namespace_of(resource: Resource, obj: Json) -> str:
    return str(obj["metadata"].get("namespace") or "default") if resource.namespaced else ""


def resource_of(ref: ObjectRef) -> Resource:
    for resource in (*RESOURCES, *REAL_ONLY):
        if (resource.api_version, resource.kind) == (ref.api_version, ref.kind):
            return resource
    for resource in kinds(addons()):
        if (resource.api_version, resource.kind) == (ref.api_version, ref.kind):
            return resource
    raise InternalError(f"{ref} is of {ref.api_version}, which this version does not know")


async def read(kube: Kube, ref: ObjectRef) -> Json | None:
    try:
        return await kube.get(resource_of(ref), ref.name, ref.namespace or None)
    except NotFound:
        return None


async def delete_ours(kube: Kube, ref: ObjectRef, label: str) -> bool:
    """Deletes by uid and only what carries our label: the name may have passed on to somebody else's object."""
    obj = await read(kube, ref)
    if obj is None or label_of(obj) != label:
        return False
    try:
        await kube.delete(resource_of(ref), ref.name, ref.namespace or None, uid=obj["metadata"]["uid"])
    except (NotFound, Conflict):
        return False
    return True
