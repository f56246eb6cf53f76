"""JSON patch (RFC 6902), merge patch (RFC 7386) and Kubernetes' strategic merge patch. All return a new document."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Any

from fakes.kube.codec import clone
from fakes.kube.schema.model import List, Map, Struct, Type
from fakes.kube.status import bad_request, failure
from harness.kube.port import ApiError, Json, PatchType

_log = logging.getLogger(__name__)


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


def not_a_map(body: Any, type: PatchType) -> ApiError:
    said = "array" if isinstance(body, list) else "string" if isinstance(body, str) else "number"
    text = f"json: cannot unmarshal {said} into Go value of type map[string]interface {{}}"
    return bad_request(text if type is PatchType.STRATEGIC else f"error decoding patch: {text}")


_ORDER = "$setElementOrder/"
_DELETE = "$deleteFromPrimitiveList/"


def strategic_patch(target: Json, patch: Json, type: Type) -> Json:
    """``type`` says which lists are merged and by which key; all others are replaced."""
    return _strategic_map(target, patch, type)


def _strategic_map(target: Any, patch: Json, type: Type | None) -> Json:
    """The very ``target`` where the patch says nothing that is not there already."""
    directive = patch.get("$patch")
    if directive == "replace":
        return {k: clone(v) for k, v in patch.items() if k != "$patch"}
    if directive == "delete":
        return {}
    if directive is not None and directive != "merge":
        raise bad_request(f"unknown patch type: {directive} in map: {go_map(patch)}")
    before: Json = target if isinstance(target, dict) else {}
    merged = dict(before)
    keep = patch.get("$retainKeys")
    if isinstance(keep, list):
        merged = {k: v for k, v in merged.items() if k in keep}
    _by_directives(merged, patch, type)
    for key, value in patch.items():
        if value is None:
            if not key.startswith("$"):
                merged.pop(key, None)
        elif value.__class__ is str or value.__class__ is bool or value.__class__ is int:
            if not key.startswith("$"):
                merged[key] = value
        elif not key.startswith("$"):
            _put(merged, key, value, type, patch)
    if isinstance(target, dict) and len(merged) == len(before) and _is_same(merged, before):
        return before
    return merged


def _put(merged: Json, key: str, value: Any, type: Type | None, patch: Json) -> None:
    inner, replaces = _inner(type, key)
    if isinstance(value, list):
        merged[key] = _strategic_list(merged.get(key), value, inner, patch.get(_ORDER + key))
    elif isinstance(value, dict) and not replaces:
        merged[key] = _strategic_map(merged.get(key), value, inner)
    else:
        merged[key] = clone(value)


def _by_directives(merged: Json, patch: Json, type: Type | None) -> None:
    for key, value in patch.items():
        if not key.startswith("$"):
            continue
        if key.startswith(_DELETE):
            field = key.removeprefix(_DELETE)
            gone = value if isinstance(value, list) else []
            merged[field] = [v for v in merged.get(field) or [] if v not in gone]
        elif key.startswith(_ORDER) and (field := key.removeprefix(_ORDER)) not in patch and field in merged:
            inner, _ = _inner(type, field)
            merged[field] = _strategic_list(merged[field], [], inner, value)


def _is_same(merged: Json, before: Json) -> bool:
    """Scalars by value and type (1 is not true), all else by identity."""
    for key, value in merged.items():
        old = before.get(key, merged)
        if old is not value and (
            value.__class__ not in _SCALARS or old.__class__ is not value.__class__ or old != value
        ):
            return False
    return True


_SCALARS = frozenset({str, int, bool, float})


def _inner(type: Type | None, key: str) -> tuple[Type | None, bool]:
    if isinstance(type, Struct):
        known = type.fields.get(key)
        return (known.type, known.replaces) if known else (None, False)
    return (type.element if isinstance(type, Map) else None), False


def _strategic_list(target: Any, patch: list[Any], type: Type | None, order: Any) -> list[Any]:
    if not isinstance(type, List) or not type.merges:
        found: list[Any] = clone(patch)
        return found
    current = [v for v in target if v is not None] if isinstance(target, list) else []
    wanted = order if isinstance(order, list) else patch
    if not type.merge_key:
        merged = [*current, *(v for v in patch if v not in current)]
        return _ordered(merged, wanted, current, lambda v: v)
    key = type.merge_key
    entries = [p for p in patch if isinstance(p, dict)]
    if any(p.get("$patch") == "replace" for p in entries):
        return [clone(p) for p in entries if p.get("$patch") != "replace"]
    merged = _merged_items(current, entries, key, type.element)
    return _ordered(merged, wanted, current, lambda v: v.get(key) if isinstance(v, dict) else v)


def _merged_items(current: list[Any], entries: list[Json], key: str, type: Type) -> list[Any]:
    merged = [c for c in current if isinstance(c, dict)]
    for entry in entries:
        wanted = entry.get(key)
        if wanted is None:
            raise bad_request(f"map: {go_map(entry)} does not contain declared merge key: {key}")
        place = next((i for i, c in enumerate(merged) if c.get(key) == wanted), None)
        if entry.get("$patch") == "delete":
            merged = [c for c in merged if c.get(key) != wanted]
        elif place is None:
            merged.append(_strategic_map({}, entry, type))
        else:
            merged[place] = _strategic_map(merged[place], entry, type)
    return merged


def _ordered(merged: list[Any], wanted: list[Any], before: list[Any], key_of: Callable[[Any], Any]) -> list[Any]:
    """What the patch names in the patch's order, the rest in the list's own; where the two do not tell, the patch's
    come first (apimachinery's pkg/util/strategicpatch, normalizeElementOrder)."""
    order = [key_of(v) for v in wanted]
    keys = [key_of(v) for v in merged]
    if keys == order:
        return merged
    old = [key_of(v) for v in before]
    pairs = list(zip(keys, merged, strict=True))
    named = deque(sorted((p for p in pairs if p[0] in order), key=lambda p: order.index(p[0])))
    rest = deque(p for p in pairs if p[0] not in order)
    found: list[Any] = []
    while rest and named:
        left, right = rest[0][0], named[0][0]
        is_first = left in old and right in old and old.index(left) < old.index(right)
        found.append((rest if is_first else named).popleft()[1])
    return [*found, *(v for _, v in rest), *(v for _, v in named)]


def go_map(value: Any) -> str:
    """As Go prints it."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{k}:{go_map(v)}" for k, v in sorted(value.items())) + "]"
    if isinstance(value, list):
        return "[" + " ".join(go_map(v) for v in value) + "]"
    return "true" if value is True else "false" if value is False else "<nil>" if value is None else str(value)


def json_patch(target: Json, operations: Any) -> Any:
    if not isinstance(operations, list):
        said = "object" if isinstance(operations, dict) else "string" if isinstance(operations, str) else "number"
        text = f"json: cannot unmarshal {said} into Go value of type []handlers.jsonPatchOp"
        raise bad_request(f"error decoding patch: {text}")
    document: Any = clone(target)
    for operation in operations:
        if not isinstance(operation, dict) or not isinstance(operation.get("path"), str):
            raise _failed(f"operation without op or path: {operation!r}")
        document = _apply(document, operation)
    return document


def _apply(document: Any, operation: Json) -> Any:
    op, path = operation.get("op"), _pointer(operation["path"])
    match op:
        case "add" | "replace":
            if "value" not in operation:
                raise _failed(f"{op} without value at {operation['path']}")
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
            raise _failed(f"unexpected kind: {op!r}")


def _failed(detail: str) -> ApiError:
    """A patch that does not fit the object is 422 without a cause; what was wrong stays with the server."""
    _log.debug("JSON patch: %s", detail)
    return failure(422, "Invalid", "the server rejected our request due to an error in our request", {})


def _pointer(path: str) -> list[str]:
    if path == "":
        return []
    if not path.startswith("/"):
        raise _failed(f"path must start with /: {path!r}")
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
        parent[last] = value  # replacing what is not there adds it, as the real server's library has it
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
