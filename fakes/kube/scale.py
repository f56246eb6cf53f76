"""The scale subresource: a Deployment or ReplicaSet seen as autoscaling/v1 Scale."""

from __future__ import annotations

from typing import Any

from fakes.kube.api import Api, Write, kind_for
from fakes.kube.status import bad_request, bad_value, invalid, no_such_path
from fakes.kube.store import Stored
from harness.kube.port import Json, PatchType, Resource


def scale_of(obj: Json) -> Json:
    meta = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {k: meta[k] for k in kept if k in meta},
        "spec": {"replicas": obj["spec"].get("replicas", 0)},
        "status": {
            "replicas": (obj.get("status") or {}).get("replicas", 0),
            "selector": selector_text(obj["spec"].get("selector") or {}),
        },
    }


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
    if not kind_for(resource).scale:
        raise no_such_path()
    old = api.get(resource, namespace, name)
    scale = api.patched(kind_for(resource), scale_of(old.object), body, type)
    return update_scale(api, resource, namespace, name, scale, write)


def update_scale(api: Api, resource: Resource, namespace: str | None, name: str, body: Any, write: Write) -> Json:
    if not kind_for(resource).scale:
        raise no_such_path()
    replicas, version = _wanted(resource, name, body)
    meta: Json = {"name": name, "resourceVersion": version} if version else {"name": name}
    patch = {"metadata": meta, "spec": {"replicas": replicas}}
    stored: Stored = api.patch(resource, namespace, name, patch, PatchType.MERGE, write, "scale")
    return scale_of(stored.object)


def _wanted(resource: Resource, name: str, body: Any) -> tuple[int, str | None]:
    spec = body.get("spec") if isinstance(body, dict) else None
    meta = body.get("metadata") if isinstance(body, dict) else None
    if not isinstance(spec, dict):
        raise bad_request("the body is no Scale: spec.replicas is needed")
    replicas = spec.get("replicas", 0)
    if isinstance(replicas, bool) or not isinstance(replicas, int):
        raise bad_request("Scale.spec.replicas must be an integer")
    if replicas < 0:
        raise invalid(resource, name, [bad_value("spec.replicas", replicas, "must be greater than or equal to 0")])
    return replicas, meta.get("resourceVersion") if isinstance(meta, dict) else None
