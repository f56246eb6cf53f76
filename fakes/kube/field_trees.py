"""Sets of fields as trees, and what is done with such sets.

A set is a tree of dicts: ``{"f:spec": {"f:replicas": {}}}``. An empty node, or one with ``"."``, is itself in the set.
Trees are never changed once they are made, so that entries and objects share them; ``None`` is the empty set. The rules
are those of structured-merge-diff v6 (fieldpath/set.go).

Objects of one make have the same fields, and most writes are like one before them. So equal trees are one tree (see
``interned``), and what became of two of those is looked up where it was worked out before.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from harness.kube.port import Json

Tree = dict[str, Any]
LEAF: Tree = {}
_ADDRESS = 'k:{"ip"'
"""How the item of a list of addresses is named: each pod has its own."""
_KEPT = 32768
"""So many trees are known at once; then all are forgotten together, which costs time and changes nothing."""


class Known:
    """The trees that are one, and what is known of them. Their ids are good keys, for they live as long as this."""

    def __init__(self) -> None:
        self.ids: dict[int, Tree] = {}
        self.trees: dict[tuple[object, ...], Tree] = {}
        self.shapes: dict[tuple[object, ...], Tree] = {}
        """The trees of values, by whatever they depend on."""
        self.results: dict[tuple[str, int, int], Tree | None] = {}
        self._constants: list[Tree] = [LEAF]
        self.forget()

    def forget(self) -> None:
        for each in (self.ids, self.trees, self.shapes, self.results):
            each.clear()
        self.ids |= {id(tree): tree for tree in self._constants}

    def constant(self, tree: Tree) -> Tree:
        """One that is worked with for ever."""
        self._constants.append(tree)
        self.ids[id(tree)] = tree
        return tree

    def intern(self, tree: Tree) -> Tree:
        """The one tree that stands for all that are equal to this one. Of a tree that no other object has, such as one
        with a pod's own address, the parts that others may have are shared."""
        if not tree:
            return LEAF
        inner = [t if id(t) in self.ids else self.intern(t) for t in tree.values()]
        key = (*tree, *map(id, inner))
        found = self.trees.get(key)
        if found is None:
            found = dict(zip(tree, inner, strict=True))
            if not next(reversed(tree)).startswith(_ADDRESS) and all(id(t) in self.ids for t in inner):
                self.trees[key] = self.ids[id(found)] = found
        return found

    def flat(self, tree: Tree) -> Tree:
        """As ``intern``, of a tree whose branches are from here."""
        found = self.trees.get((*tree, *map(id, tree.values())))
        return self.intern(tree) if found is None else found

    def shape(self, shape: tuple[object, ...], tree: Tree) -> Tree:
        """The tree, remembered by the shape that makes it."""
        found = self.flat(tree)
        if id(found) in self.ids:
            self.shapes[shape] = found
        return found

    def tidy(self) -> None:
        """Between two pieces of work: who holds the id of a tree must not lose it."""
        if max(len(self.ids), len(self.shapes), len(self.results)) > _KEPT:
            self.forget()


KNOWN = Known()


def interned(tree: Tree | None) -> Tree | None:
    """The one tree that stands for all that are equal to this one, in the order of their keys too."""
    return tree if tree is None or id(tree) in KNOWN.ids else KNOWN.intern(tree)


def _remembered(how: str, one: Tree, other: Tree, work: Callable[[Tree, Tree], Tree | None]) -> Tree | None:
    if id(one) not in KNOWN.ids or id(other) not in KNOWN.ids:
        return work(one, other)
    key = (how, id(one), id(other))
    if key in KNOWN.results:
        return KNOWN.results[key]
    found = KNOWN.results[key] = interned(work(one, other))
    return found


def is_member(tree: Tree) -> bool:
    return not tree or "." in tree


def union(one: Tree | None, other: Tree | None) -> Tree | None:
    if one is None or other is None or one is other:
        return one if other is None else other
    return _remembered("union", one, other, _union)


def _union(one: Tree, other: Tree) -> Tree | None:
    if one is other:
        return one
    found = dict(one) if one else {".": LEAF}
    if not other:
        found["."] = LEAF
    for key, inner in other.items():
        if key == ".":
            found["."] = LEAF
        else:
            found[key] = (_union(found[key], inner) or LEAF) if key in found else inner
    return LEAF if len(found) == 1 and "." in found else found


def difference(one: Tree | None, other: Tree | None) -> Tree | None:
    """The very same tree where nothing is taken away."""
    if one is None or other is None:
        return one
    return _remembered("difference", one, other, _difference)


def _difference(one: Tree, other: Tree) -> Tree | None:
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
        rest = _difference(inner, other[key]) if key in other else inner
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
    return _remembered("without", one, branches, _without)


def _without(one: Tree, branches: Tree) -> Tree | None:
    if not branches:
        return None
    if one.keys().isdisjoint(branches.keys()):
        return one
    found = {}
    for key, inner in one.items():
        rest = _without(inner, branches[key]) if key in branches else inner
        if rest is not None:
            found[key] = rest
    return found or None


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
