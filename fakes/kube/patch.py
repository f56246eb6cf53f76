"""JSON patch (RFC 6902), merge patch (RFC 7386) and Kubernetes' strategic merge patch. All return a new document."""

from __future__ import annotations

from typing import Any

from fakes.kube.codec import clone
from fakes.kube.schema.model import List, Map, Struct, Type
from fakes.kube.status import bad_request, failure
from harness.kube.port import ApiError, Json


def merge_patch(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return clone(patch)
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def strategic_patch(target: Json, patch: Json, type: Type) -> Json:
    """``type`` says which lists are merged and by which key; all others are replaced."""
    merged = _strategic_map(target, patch, type)
    return merged if isinstance(merged, dict) else {}


def _strategic_map(target: Any, patch: Json, type: Type | None) -> Json:
    directive = patch.get("$patch")
    if directive == "replace":
        return {k: clone(v) for k, v in patch.items() if k != "$patch"}
    if directive == "delete":
        return {}
    if directive is not None:
        raise bad_request(f"Unknown patch type {directive!r}: it is replace, merge or delete")
    merged: Json = dict(target) if isinstance(target, dict) else {}
    keep = patch.get("$retainKeys")
    if isinstance(keep, list):
        merged = {k: v for k, v in merged.items() if k in keep}
    for key, value in patch.items():
        if key.startswith("$deleteFromPrimitiveList/"):
            field = key.partition("/")[2]
            gone = value if isinstance(value, list) else []
            merged[field] = [v for v in merged.get(field) or [] if v not in gone]
    for key, value in patch.items():
        if key.startswith("$"):
            continue
        if value is None:
            merged.pop(key, None)
        else:
            inner, replaces = _inner(type, key)
            merged[key] = clone(value) if replaces else _strategic_value(merged.get(key), value, inner)
    return merged


def _inner(type: Type | None, key: str) -> tuple[Type | None, bool]:
    if isinstance(type, Struct):
        known = type.fields.get(key)
        return (known.type, known.replaces) if known else (None, False)
    return (type.element if isinstance(type, Map) else None), False


def _strategic_value(target: Any, patch: Any, type: Type | None) -> Any:
    if isinstance(patch, dict):
        return _strategic_map(target, patch, type)
    if not isinstance(patch, list):
        return patch
    if not isinstance(type, List) or not type.merges:
        return clone(patch)
    current = target if isinstance(target, list) else []
    if type.merge_key:
        return _merge_list(current, patch, type.merge_key, type.element)
    return [*current, *(v for v in patch if v not in current)]


def _merge_list(current: list[Any], patch: list[Any], key: str, type: Type) -> list[Any]:
    entries = [p for p in patch if isinstance(p, dict)]
    if any(p.get("$patch") == "replace" for p in entries):
        return [clone(p) for p in entries if p.get("$patch") != "replace"]
    merged = [c for c in current if isinstance(c, dict)]
    for entry in entries:
        wanted = entry.get(key)
        if wanted is None:
            if set(entry) <= {"$patch"}:
                continue
            raise bad_request(f"map: {entry} does not contain declared merge key: {key}")
        place = next((i for i, c in enumerate(merged) if c.get(key) == wanted), None)
        if entry.get("$patch") == "delete":
            merged = [c for c in merged if c.get(key) != wanted]
        elif place is None:
            merged.append(_strategic_map({}, entry, type))
        else:
            merged[place] = _strategic_map(merged[place], entry, type)
    return merged


def json_patch(target: Json, operations: list[Any]) -> Any:
    document: Any = clone(target)
    for operation in operations:
        if not isinstance(operation, dict) or not isinstance(operation.get("path"), str):
            raise bad_request(f"json patch: operation without op or path: {operation!r}")
        document = _apply(document, operation)
    return document


def _apply(document: Any, operation: Json) -> Any:
    op, path = operation.get("op"), _pointer(operation["path"])
    match op:
        case "add" | "replace":
            if "value" not in operation:
                raise bad_request(f"json patch: {op} without value at {operation['path']}")
            return _set(document, path, clone(operation["value"]), must_exist=op == "replace")
        case "remove":
            return _remove(document, path)
        case "test":
            if _get(document, path) != operation.get("value"):
                raise _failed(f"testing path {operation['path']} failed: test failed")
            return document
        case "move" | "copy":
            source = _pointer(str(operation.get("from", "")))
            value = clone(_get(document, source))
            if op == "move":
                document = _remove(document, source)
            return _set(document, path, value, must_exist=False)
        case _:
            raise bad_request(f"json patch: unexpected kind: {op!r}")


def _failed(detail: str) -> ApiError:
    """A patch that reads well but does not fit the object is 422 without causes."""
    return failure(422, "Invalid", f"the server rejected our request due to an error in our request: {detail}", {})


def _pointer(path: str) -> list[str]:
    if path == "":
        return []
    if not path.startswith("/"):
        raise bad_request(f"json patch: path must start with /: {path!r}")
    return [step.replace("~1", "/").replace("~0", "~") for step in path[1:].split("/")]


def _get(document: Any, path: list[str]) -> Any:
    for step in path:
        document = _child(document, step)
    return document


def _child(parent: Any, step: str) -> Any:
    if isinstance(parent, dict) and step in parent:
        return parent[step]
    if isinstance(parent, list):
        return parent[_index(parent, step, len(parent) - 1)]
    raise _failed(f"no value at {step!r}")


def _index(parent: list[Any], step: str, highest: int) -> int:
    if step.isascii() and step.isdigit() and int(step) <= highest:
        return int(step)
    raise _failed(f"index {step!r} is not in the list of {len(parent)}")


def _set(document: Any, path: list[str], value: Any, *, must_exist: bool) -> Any:
    if not path:
        return value
    parent, last = _get(document, path[:-1]), path[-1]
    if isinstance(parent, dict):
        if must_exist and last not in parent:
            raise _failed(f"replace of a missing value at {last!r}")
        parent[last] = value
    elif isinstance(parent, list) and must_exist:
        parent[_index(parent, last, len(parent) - 1)] = value
    elif isinstance(parent, list):
        parent.insert(len(parent) if last == "-" else _index(parent, last, len(parent)), value)
    else:
        raise _failed(f"no place for {last!r}")
    return document


def _remove(document: Any, path: list[str]) -> Any:
    if not path:
        raise _failed("the whole document cannot be removed")
    parent, last = _get(document, path[:-1]), path[-1]
    if isinstance(parent, dict) and last in parent:
        del parent[last]
    elif isinstance(parent, list):
        del parent[_index(parent, last, len(parent) - 1)]
    else:
        raise _failed(f"remove of a missing value at {last!r}")
    return document
