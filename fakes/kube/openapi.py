"""The least OpenAPI v3 with which kubectl creates and applies: the operations and their parameters, no field schemas.

So fields are not checked by the client; what the server itself checks is in ``structure`` and ``validate``.
"""

from __future__ import annotations

from fakes.kube.kinds import Kind, Kinds
from harness.kube.port import Json


def index(kinds: Kinds) -> Json:
    paths = sorted({_base(kind) for kind in kinds.served.values()})
    return {"paths": {path: {"serverRelativeURL": f"/openapi/v3/{path}?hash=embedded"} for path in paths}}


def document(kinds: Kinds, path: str) -> Json | None:
    """Of one group version (``api/v1``, ``apis/apps/v1``)."""
    found = [kind for kind in kinds.served.values() if _base(kind) == path]
    if not found:
        return None
    paths: Json = {}
    for kind in found:
        collection = "/" + kind.resource.path("{namespace}" if kind.resource.namespaced else None).lstrip("/")
        paths[collection] = {"post": _operation(kind, "post"), "get": _operation(kind, "list")}
        paths[collection + "/{name}"] = {
            "get": _operation(kind, "get"),
            "put": _operation(kind, "put"),
            "patch": _operation(kind, "patch"),
        }
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes (embedded)", "version": "v1"},
        "paths": paths,
        "components": {"schemas": {_schema_name(kind): _schema(kind) for kind in found}},
    }


def _base(kind: Kind) -> str:
    resource = kind.resource
    return f"apis/{resource.group}/{resource.version}" if resource.group else f"api/{resource.version}"


def _operation(kind: Kind, action: str) -> Json:
    resource = kind.resource
    names = ("dryRun", "fieldManager", "fieldValidation")
    parameters = [{"name": n, "in": "query", "schema": {"type": "string", "uniqueItems": True}} for n in names]
    schema = {"$ref": f"#/components/schemas/{_schema_name(kind)}"}
    return {
        "operationId": f"{action}{resource.group}{resource.version}{resource.kind}",
        "parameters": parameters,
        "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": schema}}}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _gvk(kind),
    }


def _gvk(kind: Kind) -> Json:
    return {"group": kind.resource.group, "kind": kind.resource.kind, "version": kind.resource.version}


def _schema_name(kind: Kind) -> str:
    return f"io.k8s.api.{kind.resource.group or 'core'}.{kind.resource.version}.{kind.resource.kind}"


def _schema(kind: Kind) -> Json:
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "type": "object",
        "description": f"{kind.resource.kind} as the embedded API serves it; its fields are not described here.",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": free,
            "spec": free,
            "status": free,
        },
        "x-kubernetes-preserve-unknown-fields": True,
        "x-kubernetes-group-version-kind": [_gvk(kind)],
    }
