"""Sets of fields as managedFields write them (FieldsV1), and what of an object has changed, in that form.

A set is a tree of dicts: ``{"f:spec": {"f:replicas": {}}}``. An empty node, or one with ``"."``, is itself in the set.
Trees are never changed once they are made, so that entries and objects share them; ``None`` is the empty set. The rules
are those of structured-merge-diff v6 (typed/compare.go, typed/tofieldset.go, fieldpath/set.go).
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from fakes.kube.schema.model import List, Map, Struct, Type
from harness.kube.port import Json

Tree = dict[str, Any]
LEAF: Tree = {}
_KEY_DEFAULTS = {"protocol": "TCP"}


def is_member(tree: Tree) -> bool:
    return not tree or "." in tree


def union(one: Tree | None, other: Tree | None) -> Tree | None:
    if one is None or other is None or one is other:
        return one if other is None else other
    found = dict(one) if one else {".": LEAF}
    if not other:
        found["."] = LEAF
    for key, inner in other.items():
        if key == ".":
            found["."] = LEAF
        else:
            found[key] = (union(found[key], inner) or LEAF) if key in found else inner
    return LEAF if len(found) == 1 and "." in found else found


def difference(one: Tree | None, other: Tree | None) -> Tree | None:
    """The very same tree where nothing is taken away."""
    if one is None or other is None:
        return one
    if is_member(one) and is_member(other):
        return _without_member(one, other)
    if not one or not other or one.keys().isdisjoint(other.keys()):
        return one
    return _children(one, other, "." in one)


def _without_member(one: Tree, other: Tree) -> Tree | None:
    return _children(one, other, False) if one else None


def _children(one: Tree, other: Tree, member: bool) -> Tree | None:
    found: Tree = {".": LEAF} if member else {}
    changed = "." in one and not member
    for key, inner in one.items():
        if key == ".":
            continue
        rest = difference(inner, other[key]) if key in other else inner
        changed = changed or rest is not inner
        if rest is not None:
            found[key] = rest
    if not changed:
        return one
    if found == {".": LEAF}:
        return LEAF
    return found or None


def intersection(one: Tree | None, other: Tree | None) -> Tree | None:
    if one is None or other is None:
        return None
    found: Tree = {".": LEAF} if is_member(one) and is_member(other) else {}
    for key, inner in one.items():
        if key != "." and key in other and (both := intersection(inner, other[key])) is not None:
            found[key] = both
    return LEAF if found == {".": LEAF} else found or None


def without(one: Tree | None, branches: Tree) -> Tree | None:
    """Less whole branches: a leaf of ``branches`` takes all that is below it."""
    if one is None or not branches:
        return None if not branches else one
    if one.keys().isdisjoint(branches.keys()):
        return one
    found = {}
    for key, inner in one.items():
        rest = without(inner, branches[key]) if key in branches else inner
        if rest is not None:
            found[key] = rest
    return found or None


@lru_cache(maxsize=8192)
def _key_of_one(name: str, value: str | int) -> str:
    return "k:" + json.dumps({name: value}, separators=(",", ":"), ensure_ascii=False)


def item_key(type: List, item: Any) -> str:
    """How an item of a keyed list or of a set is named in a tree."""
    if len(type.keys) == 1 and isinstance(item, dict):
        value = item.get(type.keys[0])
        if value.__class__ is str:
            return _key_of_one(type.keys[0], value)
    if not type.keys:
        return "v:" + json.dumps(item, separators=(",", ":"), ensure_ascii=False)
    keys = {}
    if isinstance(item, dict):
        for name in sorted(type.keys):
            value = item.get(name, _KEY_DEFAULTS.get(name))
            if value is not None:
                keys[name] = value
    return "k:" + json.dumps(keys, separators=(",", ":"), ensure_ascii=False)


def field_set(type: Type, value: Any) -> Tree | None:
    """What an applied object claims: leaves, and the items of keyed lists."""
    if type.kind == "any":
        type = DEDUCED if isinstance(value, dict) else type
    if isinstance(value, dict) and isinstance(type, Struct | Map) and not type.atomic:
        found: Tree = {}
        for key, item in value.items():
            inner = element_of(type, key)
            known = isinstance(type, Struct) and key in type.fields
            tree = field_set(inner, item) if inner is not None else LEAF
            if item is None or item == {} or not known:
                tree = union(tree, LEAF)
            if tree is not None:
                found["f:" + key] = tree
        return found or None
    if isinstance(value, list) and isinstance(type, List) and not type.atomic:
        found = {}
        for item in value:
            found[item_key(type, item)] = union(field_set(type.element, item), LEAF)
        return found or None
    return LEAF


class _Deduced(Map):
    """Of a value without a schema: objects field by field, lists and scalars whole."""

    def __init__(self) -> None:
        super().__init__("map[string]interface {}", self)


DEDUCED = _Deduced()


def element_of(type: Struct | Map, key: str) -> Type | None:
    if isinstance(type, Struct):
        known = type.fields.get(key)
        return known.type if known else None
    return type.element


def added(type: Type, value: Any) -> Tree:
    """The whole of a value that was not there."""
    if isinstance(value, dict) and value and not type.atomic:
        if type.kind in ("any", "struct", "map"):
            found: Tree = {".": LEAF}
            if isinstance(type, Struct):
                fields = type.fields
                for key, item in value.items():
                    known = fields.get(key)
                    if known is not None:
                        found["f:" + key] = LEAF if known.type.kind == "scalar" else added(known.type, item)
            else:
                inner = type.element if isinstance(type, Map) else type
                scalar = inner.kind == "scalar"
                for key, item in value.items():
                    found["f:" + key] = LEAF if scalar else added(inner, item)
            return found
    elif isinstance(value, list) and value and isinstance(type, List) and not type.atomic:
        found = {".": LEAF}
        for item in value:
            found[item_key(type, item)] = added(type.element, item)
        return found
    return LEAF


def compare(type: Type, old: Any, new: Any) -> tuple[Tree | None, Tree | None]:
    """(added or modified, removed) between two values that are both there."""
    if old is new or old == new:
        return None, None
    if type.atomic:
        return LEAF, None
    if isinstance(type, List):
        return _compare_lists(type, old or [], new or [])
    if type.kind == "scalar" or not isinstance(old, dict) or not isinstance(new, dict):
        return (LEAF, None) if old or new else (None, None)
    changed: Tree = {}
    removed: Tree = {}
    for key, item in new.items():
        before = old.get(key, _ABSENT)
        if before is item:
            continue
        inner = _inner(type, key)
        if inner is None:
            continue
        if before is _ABSENT:
            changed["f:" + key] = added(inner, item)
            continue
        more, less = compare(inner, before, item)
        if more is not None:
            changed["f:" + key] = more
        if less is not None:
            removed["f:" + key] = less
    for key, item in old.items():
        if key not in new and (inner := _inner(type, key)) is not None:
            removed["f:" + key] = added(inner, item)
    return changed or None, removed or None


_ABSENT: Any = object()


def _inner(type: Type, key: str) -> Type | None:
    if isinstance(type, Struct):
        known = type.fields.get(key)
        return known.type if known is not None else None
    return type.element if isinstance(type, Map) else type


def _compare_lists(type: List, old: list[Any], new: list[Any]) -> tuple[Tree | None, Tree | None]:
    changed: Tree = {}
    removed: Tree = {}
    if len(old) == len(new):
        # Most changes leave the list's items where they are: only those that differ need their names.
        pairs = [(a, b) for a, b in zip(old, new, strict=True) if a is not b and a != b]
        if not pairs:
            return None, None
        old, new = [a for a, _ in pairs], [b for _, b in pairs]
    before = {item_key(type, item): item for item in old}
    after = {item_key(type, item): item for item in new}
    for key, item in after.items():
        if key not in before:
            changed[key] = added(type.element, item)
            continue
        more, less = compare(type.element, before[key], item)
        if more is not None:
            changed[key] = more
        if less is not None:
            removed[key] = less
    for key, item in before.items():
        if key not in after:
            removed[key] = added(type.element, item)
    return changed or None, removed or None


def paths(tree: Tree, prefix: str = "") -> list[str]:
    """The members as people write them: ``.spec.containers[name="main"].image``."""
    found = [prefix] if is_member(tree) and prefix else []
    for key in sorted(tree, key=lambda k: (k[0] != "f", k)):
        if key == ".":
            continue
        mark, _, rest = key.partition(":")
        if mark == "f":
            step = f".{rest}"
        elif mark == "k":
            named: Json = json.loads(rest)
            step = "[" + ",".join(f"{k}={json.dumps(v)}" for k, v in sorted(named.items())) + "]"
        else:
            step = f"[={rest}]"
        found += paths(tree[key], prefix + step)
    return found
