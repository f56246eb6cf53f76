"""The scale subresource: a Deployment or ReplicaSet seen as autoscaling/v1 Scale."""

from __future__ import annotations

from typing import Any

from fakes.kube.api import Api, Write
from fakes.kube.kinds import Kind
from fakes.kube.reading import strict_error
from fakes.kube.schema.build import type_of
from fakes.kube.schema.model import Reader
from fakes.kube.schema.scalars import Mismatch
from fakes.kube.status import bad_request, bad_value, invalid, no_such_path
from fakes.kube.store import Stored
from harness.kube.port import Json, PatchType, Resource


def scale_of(kind: Kind, obj: Json) -> Json:
    paths = kind.scale
    if paths is None:
        raise no_such_path()
    meta = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    status: Json = {"replicas": _at(obj, paths.status) or 0}
    if kind.custom:
        selector = _at(obj, paths.selector) if paths.selector else None
    else:
        selector = selector_text(obj["spec"].get("selector") or {})
    if selector:
        status["selector"] = selector
    replicas = _at(obj, paths.spec)
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {k: meta[k] for k in kept if k in meta},
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def _at(obj: Json, path: tuple[str, ...]) -> Any:
    found: Any = obj
    for step in path:
        found = found.get(step) if isinstance(found, dict) else None
    return found


def selector_text(selector: Json) -> str:
    terms = [f"{k}={v}" for k, v in sorted((selector.get("matchLabels") or {}).items())]
    for expression in selector.get("matchExpressions") or []:
        key, values = expression.get("key", ""), ",".join(expression.get("values") or [])
        match expression.get("operator"):
            case "In":
                terms.append(f"{key} in ({values})")
            case "NotIn":
                terms.append(f"{key} notin ({values})")
            case "DoesNotExist":
                terms.append(f"!{key}")
            case _:
                terms.append(key)
    return ",".join(terms)


def patch_scale(
    api: Api, resource: Resource, namespace: str | None, name: str, body: Any, type: PatchType, write: Write
) -> Json:
    old = api.get(resource, namespace, name)
    now = scale_of(api.kind(resource), old.object)
    if type is PatchType.STRATEGIC and isinstance(body, dict):
        type = PatchType.MERGE  # a Scale has no list that could be merged
    scale = api.patched(api.kind(resource), now, body, type)
    return update_scale(api, resource, namespace, name, scale, write)


def update_scale(api: Api, resource: Resource, namespace: str | None, name: str, body: Any, write: Write) -> Json:
    kind = api.kind(resource)
    if kind.scale is None:
        raise no_such_path()
    replicas, version = _wanted(name, body, write)
    meta: Json = {"name": name, "resourceVersion": version} if version else {"name": name}
    patch: Json = {"metadata": meta}
    inner = patch
    for step in kind.scale.spec[:-1]:
        inner = inner.setdefault(step, {})
    inner[kind.scale.spec[-1]] = replicas
    stored: Stored = api.patch(resource, namespace, name, patch, PatchType.MERGE, write, "scale")
    return scale_of(kind, stored.object)


def _wanted(name: str, body: Any, write: Write) -> tuple[int, str | None]:
    reader = Reader()
    try:
        scale = type_of("autoscaling/v1.Scale").inspect(body, "", reader)
    except Mismatch as e:
        raise bad_request(f'Scale in version "v1" cannot be handled as a Scale: {e}') from None
    said = [f'unknown field "{path}"' for path in reader.unknown]
    if said and write.validation == "Strict":
        raise strict_error("Scale", "v1", said)
    if write.validation == "Warn":
        write.warnings.extend(said)
    stated = scale["metadata"].get("name", "")
    if stated != name:
        raise bad_request(f"the name of the object ({stated}) does not match the name on the URL ({name})")
    replicas = scale["spec"].get("replicas", 0)
    if replicas < 0:
        cause = bad_value("spec.replicas", replicas, "must be greater than or equal to 0")
        raise invalid(SCALE, name, [cause])
    return replicas, scale["metadata"].get("resourceVersion")


SCALE = Resource("autoscaling", "v1", "scales", "Scale", True)
