"""OpenAPI v3, with which kubectl creates, applies and explains: operations, parameters, and the fields of every kind.

Fields have types and no descriptions. What is checked is checked by the server.
"""

from __future__ import annotations

from fakes.kube.kinds import Kind, Kinds
from fakes.kube.schema.raw import raw_types
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
        "components": {"schemas": _schemas(found)},
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
    if kind.schema:
        return _named(kind.schema)
    return f"io.k8s.api.{kind.resource.group or 'core'}.{kind.resource.version}.{kind.resource.kind}"


def _schemas(kinds: list[Kind]) -> Json:
    """Of the kinds and of every type that they reach."""
    found: Json = {}
    waiting: list[str] = []
    for kind in kinds:
        found[_schema_name(kind)] = _schema(kind, waiting)
    while waiting:
        name = waiting.pop()
        if _named(name) not in found:
            found[_named(name)] = _struct(name, waiting)
    return found


def _schema(kind: Kind, waiting: list[str]) -> Json:
    meta = _ref("meta/v1.ObjectMeta", waiting)
    text = {"type": "string"}
    if kind.schema:
        described = _struct(kind.schema, waiting)
    else:
        free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        described = {"type": "object", "properties": {"spec": free, "status": free}}
        described["x-kubernetes-preserve-unknown-fields"] = True
    properties = {"apiVersion": text, "kind": text} | described["properties"] | {"metadata": meta}
    return described | {"properties": properties, "x-kubernetes-group-version-kind": [_gvk(kind)]}


def _named(type_: str) -> str:
    package, _, name = type_.rpartition(".")
    group, _, version = package.partition("/")
    place = "io.k8s.apimachinery.pkg.apis" if group == "meta" else "io.k8s.api"
    return f"{place}.{group}.{version}.{name}"


def _struct(name: str, waiting: list[str]) -> Json:
    fields = raw_types()[name]["fields"]
    return {"type": "object", "properties": {f["name"]: _of(f["type"], waiting) for f in fields}}


def _of(type_: str, waiting: list[str]) -> Json:
    type_ = type_.lstrip("*")
    if type_ == "[]byte":
        return {"type": "string", "format": "byte"}
    if type_.startswith("[]"):
        return {"type": "array", "items": _of(type_[2:], waiting)}
    if type_.startswith("map[string]"):
        return {"type": "object", "additionalProperties": _of(type_[11:], waiting)}
    if type_ in _SCALARS:
        return dict(_SCALARS[type_])
    alias = raw_types()[type_].get("alias")
    return _of(alias, waiting) if alias else _ref(type_, waiting)


def _ref(type_: str, waiting: list[str]) -> Json:
    waiting.append(type_)
    return {"allOf": [{"$ref": f"#/components/schemas/{_named(type_)}"}], "default": {}}


_SCALARS: dict[str, Json] = {
    "string": {"type": "string"},
    "duration": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "float64": {"type": "number", "format": "double"},
    "quantity": {"type": "string"},
    "time": {"type": "string", "format": "date-time"},
    "microtime": {"type": "string", "format": "date-time"},
    "int-or-string": {"type": "string", "format": "int-or-string"},
    "any": {"type": "object"},
}
