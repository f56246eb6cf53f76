"""Server-side apply: what is applied is merged in, fields that are no longer applied go, and owners are respected.

The steps are those of structured-merge-diff v6 (merge/update.go, typed/merge.go, typed/remove.go).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from fakes.kube.codec import clone
from fakes.kube.field_trees import (
    LEAF,
    Tree,
    difference,
    interned,
    intersection,
    is_member,
    paths,
    union,
    without,
)
from fakes.kube.fieldsets import DEDUCED, compare, element_of, field_set, item_key
from fakes.kube.kinds import Kind
from fakes.kube.ownership import Writer, entry_of, ordered, reset_fields, stripped, writer_of
from fakes.kube.reading import read_patched
from fakes.kube.schema.model import List, Map, Reader, Struct, Type
from fakes.kube.schema.scalars import Mismatch
from fakes.kube.status import bad_request, failure
from harness.kube.port import ApiError, Json

_FIRST = "before-first-apply"
_KUBECTL = "kubectl"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass(slots=True)
class Applied:
    object: Json
    unchanged: bool
    warnings: list[str] = field(default_factory=list)


def applied(kind: Kind, live: Json | None, body: Any, writer: Writer, stamp: str, force: bool) -> Applied:
    """``live`` is None where the object is to be created. Raises what the real server answers, 409 among it."""
    config = _checked(kind, body)
    type_ = kind.type
    here: Json = live if live is not None else type_.zero()
    entries = _entries(kind, here, live is not None, stamp, writer.subresource)
    hidden = reset_fields(kind, writer.subresource)
    mine = field_set(type_, config)
    if hidden is not None:
        mine = without(mine, hidden)
    last = next((e["fieldsV1"] for e in entries if writer_of(e) == _identity(writer)), None)
    merged = merge(type_, {k: v for k, v in here.items() if k != "metadata"} | {"metadata": _bare(here)}, config)
    others = [e for e in entries if writer_of(e) != _identity(writer)]
    if last:
        merged = _pruned(type_, merged, last, [*(e["fieldsV1"] for e in others), mine])
    warnings: list[str] = []
    found = read_patched(kind, here, merged, "Ignore", warnings)
    before = {k: v for k, v in here.items() if k != "metadata"} | {"metadata": _bare(here)}
    changed, removed = compare(type_, before, found)
    if hidden is not None:
        changed, removed = without(changed, hidden), without(removed, hidden)
    if not force:
        allowed = _of_client_side_apply(type_, here) if writer.manager == _KUBECTL else None
        _refuse_conflicts(others, difference(changed, allowed))
    same = live is not None and changed is None and removed is None
    kept = _kept(others, changed, removed)
    claim = stripped(mine)
    if claim is not None:
        old_stamp = next((e.get("time") for e in entries if writer_of(e) == _identity(writer)), None)
        entry = entry_of(writer, kind.resource.api_version, interned(claim) or LEAF, stamp)
        if same:
            entry.pop("time")
            if old_stamp:
                entry["time"] = old_stamp
        kept.append(entry)
    found["metadata"] = dict(found["metadata"])
    if writer.manager == _KUBECTL:
        _keep_last_applied(found["metadata"], config)
    found["metadata"]["managedFields"] = ordered(kept)
    unchanged = same and _timeless(found) == _timeless(here)
    return Applied(found, unchanged, warnings)


def _of_client_side_apply(type_: Type, live: Json) -> Tree | None:
    """What kubectl's client-side apply wrote and nobody changed since: its server-side apply may take that over."""
    text = (live["metadata"].get("annotations") or {}).get(_LAST_APPLIED)
    try:
        last = json.loads(text) if text else None
    except ValueError:
        return None
    if not isinstance(last, dict) or last.get("apiVersion") != live.get("apiVersion"):
        return None
    changed, removed = compare(type_, last, live)
    return difference(difference(field_set(type_, last), changed), removed)


def _keep_last_applied(meta: Json, config: Json) -> None:
    """The annotation of client-side apply, where there is one, says what was applied last, whichever way."""
    annotations = meta.get("annotations") or {}
    if _LAST_APPLIED in annotations:
        text = json.dumps(config, separators=(",", ":"), sort_keys=True, ensure_ascii=False) + "\n"
        meta["annotations"] = annotations | {_LAST_APPLIED: text}


def _identity(writer: Writer) -> Writer:
    return Writer(writer.manager, "Apply", "", writer.subresource)


def _timeless(obj: Json) -> list[Json]:
    entries = obj["metadata"].get("managedFields") or []
    return [{k: v for k, v in e.items() if k != "time"} for e in entries]


def _bare(obj: Json) -> Json:
    return {k: v for k, v in (obj.get("metadata") or {}).items() if k != "managedFields"}


def _checked(kind: Kind, body: Any) -> Json:
    resource = kind.resource
    if not isinstance(body, dict):
        said = "array" if isinstance(body, list) else "string" if isinstance(body, str) else "number"
        text = f"json: cannot unmarshal {said} into Go value of type map[string]interface {{}}"
        raise bad_request(f"error decoding patch: error unmarshaling JSON: while decoding JSON: {text}")
    stated = _said(body.get("apiVersion", ""), body.get("kind", ""))
    if stated != _said(resource.api_version, resource.kind):
        raise bad_request(f"invalid object type: {stated}")
    meta = body.get("metadata")
    if meta is not None and not isinstance(meta, dict):
        raise bad_request("metadata of the applied object is no object")
    if (meta or {}).get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    reader = Reader()
    try:
        kind.type.inspect(body, "", reader)
    except Mismatch as e:
        raise _untyped(kind, body, str(e)) from None
    if reader.unknown and not kind.custom:
        said = "\n".join(f".{path}: field not declared in schema" for path in reader.unknown)
        raise _untyped(kind, body, said)
    found: Json = clone(body)
    return found


def _said(version: Any, kind: Any) -> str:
    """Group, version and kind as Go prints them; the core group is empty."""
    full = version if "/" in str(version) else f"/{version}"
    return f"{full}, Kind={kind}"


def _untyped(kind: Kind, body: Json, why: str) -> ApiError:
    meta = body.get("metadata") or {}
    what = f"{meta.get('namespace', '')}/{meta.get('name', '')}; {_said(kind.resource.api_version, kind.resource.kind)}"
    return bad_request(f"failed to create typed patch object ({what}): {why}")


def _entries(kind: Kind, here: Json, exists: bool, stamp: str, subresource: str) -> list[Json]:
    """Of an object that nobody tracked so far, one entry stands for all who wrote it before."""
    entries: list[Json] = (here.get("metadata") or {}).get("managedFields") or []
    if entries or not exists:
        return entries
    changed, _ = compare(kind.type, kind.type.zero(), here)
    hidden = reset_fields(kind, subresource)
    tree = stripped(changed if hidden is None else without(changed, hidden))
    writer = Writer(_FIRST, "Update", kind.resource.api_version)
    return [entry_of(writer, kind.resource.api_version, tree, stamp)] if tree is not None else []


def _kept(others: list[Json], changed: Tree | None, removed: Tree | None) -> list[Json]:
    kept = []
    for entry in others:
        tree = difference(difference(entry["fieldsV1"], changed), removed)
        if tree is entry["fieldsV1"]:
            kept.append(entry)
        elif tree is not None:
            kept.append(entry | {"fieldsV1": tree})
    return kept


def _refuse_conflicts(others: list[Json], changed: Tree | None) -> None:
    found: list[tuple[str, str]] = []
    for entry in others:
        both = intersection(entry["fieldsV1"], changed)
        if both is not None:
            found += [(_printed(entry), path) for path in paths(both)]
    if not found:
        return
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {who}", "field": path} for who, path in found
    ]
    if len(found) == 1:
        text = f"Apply failed with 1 conflict: conflict with {found[0][0]}: {found[0][1]}"
    else:
        lines = []
        for who in sorted({w for w, _ in found}):
            lines.append(f"conflicts with {who}:")
            lines += [f"- {path}" for w, path in found if w == who]
        text = f"Apply failed with {len(found)} conflicts: " + "\n".join(lines)
    raise failure(409, "Conflict", text, {"causes": causes})


def _printed(entry: Json) -> str:
    said = f'"{entry["manager"]}"'
    if entry.get("subresource"):
        said += f' with subresource "{entry["subresource"]}"'
    return f"{said} using {entry['apiVersion']}" if entry["operation"] == "Update" else said


def merge(type: Type, live: Any, config: Any) -> Any:
    """``config`` over ``live``."""
    if type.kind == "any" and isinstance(config, dict):
        type = DEDUCED
    if isinstance(config, dict) and isinstance(type, Struct | Map) and not type.atomic:
        found = dict(live) if isinstance(live, dict) else {}
        for key, item in config.items():
            inner = element_of(type, key)
            found[key] = merge(inner, found.get(key), item) if inner is not None else item
        return found
    if isinstance(config, list) and isinstance(type, List) and not type.atomic:
        return _merged_list(type, live if isinstance(live, list) else [], config)
    return config


def _merged_list(type: List, live: list[Any], config: list[Any]) -> list[Any]:
    """Both orders as far as they agree; where they do not, that of ``config`` (typed/merge.go, visitListItems)."""
    before = {item_key(type, item): item for item in live}
    after = {item_key(type, item): item for item in config}
    left, right = list(before), list(after)
    shared = [key for key in right if key in before]
    found: list[Any] = []
    done: set[str] = set()
    at = 0
    for key in right:
        while at < len(left) and left[at] != key:
            if left[at] not in after:
                found.append(before[left[at]])
            elif left[at] not in done and shared and shared[0] == left[at]:
                break
            at += 1
        if at < len(left) and left[at] == key:
            at += 1
        found.append(merge(type.element, before.get(key), after[key]))
        done.add(key)
        if shared and shared[0] == key:
            shared.pop(0)
    return found + [before[key] for key in left[at:] if key not in after]


def _pruned(type: Type, merged: Json, last: Tree, owned: list[Tree | None]) -> Json:
    """Less what the applier had and no longer has, where nobody else owns it."""
    last = _named(last)
    pruned = remove(type, merged, last)
    managed: Tree | None = None
    for tree in owned:
        managed = union(managed, tree)
    all_of = _named(field_set(type, merged) or LEAF)
    there = union(_named(field_set(type, pruned) or {}), _named(managed or {}))
    pruned = remove(type, merged, difference(all_of, there))
    left = _named(field_set(type, pruned) or {})
    found: Json = remove(type, merged, intersection(difference(all_of, left), last))
    return found


def _named(tree: Tree) -> Tree:
    """Every field on the way is in the set too."""
    if not tree:
        return tree
    found = {k: _named(v) if k != "." else v for k, v in tree.items()}
    return {".": LEAF} | found


def remove(type: Type, value: Any, tree: Tree | None) -> Any:
    """The value without the members of ``tree``."""
    if tree is None or not tree:
        return value
    if type.kind == "any" and isinstance(value, dict):
        type = DEDUCED
    if isinstance(value, dict) and isinstance(type, Struct | Map) and not type.atomic:
        found = {}
        for key, item in value.items():
            inner, below = element_of(type, key), tree.get("f:" + key)
            if below is None:
                found[key] = item
            elif not is_member(below) and inner is not None:
                found[key] = remove(inner, item, below)
        return found or None
    if isinstance(value, list) and isinstance(type, List) and not type.atomic:
        items = []
        for item in value:
            below = tree.get(item_key(type, item))
            if below is None:
                items.append(item)
            elif not is_member(below):
                items.append(remove(type.element, item, below))
        return items or None
    return value
