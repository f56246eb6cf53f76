"""What of an object is said, and what has changed in it, as trees of fields (FieldsV1 of managedFields).

The rules are those of structured-merge-diff v6 (typed/compare.go, typed/tofieldset.go). Which fields a value has
follows from its shape, and shapes come again: their trees are made once.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from fakes.kube.field_trees import KNOWN, LEAF, Tree, union
from fakes.kube.schema.model import List, Map, Struct, Type
from harness.kube.port import Json

_KEY_DEFAULTS = {"protocol": "TCP"}


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
    if not value or type.atomic:
        return LEAF
    if isinstance(value, dict):
        if isinstance(type, Struct):
            return _struct_added(type, value)
        if type.kind in ("any", "map"):
            inner = type.element if isinstance(type, Map) else type
            if inner.kind == "scalar":
                return _shaped(tuple(value), None)
            return _shaped(tuple(value), [added(inner, item) for item in value.values()])
    elif isinstance(value, list) and isinstance(type, List):
        return KNOWN.flat({".": LEAF} | {item_key(type, item): added(type.element, item) for item in value})
    return LEAF


def _struct_added(type: Struct, value: Json) -> Tree:
    """What it comes to depends on which fields there are, and on what is in those that are no scalars."""
    fields, inner = type.fields, []
    for key, item in value.items():
        known = fields.get(key)
        if known is not None and known.type.kind != "scalar":
            inner.append(added(known.type, item))
    shape = (type, *value, *map(id, inner))
    found = KNOWN.shapes.get(shape)
    if found is None:
        parts, found = iter(inner), {".": LEAF}
        for key in value:
            known = fields.get(key)
            if known is not None:
                found["f:" + key] = LEAF if known.type.kind == "scalar" else next(parts)
        found = KNOWN.shape(shape, found)
    return found


def _shaped(names: tuple[str, ...], inner: list[Tree] | None) -> Tree:
    """Of a map; without ``inner`` all that it holds are leaves."""
    shape = ("map", *names, *map(id, inner or ()))
    found = KNOWN.shapes.get(shape)
    if found is None:
        trees = inner if inner is not None else [LEAF] * len(names)
        found = {".": LEAF} | {"f:" + name: tree for name, tree in zip(names, trees, strict=True)}
        found = KNOWN.shape(shape, found)
    return found


def born(type: Struct, value: Json) -> tuple[Tree | None, Tree | None]:
    """As ``compare`` with a value in which nothing has been said yet."""
    zero = type.zero_once()
    if not zero.keys() <= value.keys():
        return compare(type, zero, value)
    fields, names, inner = type.fields, [], []
    for key, item in value.items():
        known = fields.get(key)
        if known is None:
            continue
        before = zero.get(key, _ABSENT)
        if before is _ABSENT:
            if known.type.kind != "scalar":
                inner.append(added(known.type, item))
        else:
            if item == before:
                continue
            if known.type.kind != "scalar":
                if isinstance(known.type, Struct) and not known.type.atomic:
                    tree, less = born(known.type, item)
                else:
                    tree, less = compare(known.type, before, item)
                if tree is None or less is not None:
                    return compare(type, zero, value)
                inner.append(tree)
        names.append(key)
    if not names:
        return None, None
    shape = ("born", type, *names, *map(id, inner))
    found = KNOWN.shapes.get(shape)
    if found is None:
        parts = iter(inner)
        found = {"f:" + key: LEAF if fields[key].type.kind == "scalar" else next(parts) for key in names}
        found = KNOWN.shape(shape, found)
    return found, None


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
    return KNOWN.flat(changed) if changed else None, KNOWN.flat(removed) if removed else None


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
    return KNOWN.flat(changed) if changed else None, KNOWN.flat(removed) if removed else None
