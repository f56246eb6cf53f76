"""The types of the served kinds, and reading a body as the real server's decoder does.

Reading gives the object as the real server would write it back: null is absent, a zero value of a field with
``omitempty`` is absent, a struct that is no pointer is there even when empty, quantities and times are in their
canonical form. Fields that the kind does not have are dropped and reported.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fakes.kube.schema.scalars import Mismatch, Trouble

Json = dict[str, Any]


@dataclass(slots=True)
class Reader:
    """The thorough reading: where it is, and what it dropped."""

    unknown: list[str] = field(default_factory=list)
    fields: list[str] = field(default_factory=list)
    struct: str = ""

    def mismatch(self, value: Any, go: str) -> Mismatch:
        where = f"Go struct field {self.struct}.{'.'.join(self.fields)}" if self.struct else "Go value"
        return Mismatch(f"json: cannot unmarshal {_json_name(value, go)} into {where} of type {go}")


class Type:
    """``go`` is the type's name in Go's messages."""

    __slots__ = ("atomic", "go", "kind")
    kind: str
    go: str
    atomic: bool

    def read(self, value: Any) -> Any:
        """Raises ``Trouble``."""
        raise Trouble

    def inspect(self, value: Any, path: str, reader: Reader) -> Any:
        """As ``read``, slowly and with words. Raises ``Mismatch``."""
        try:
            return self.read(value)
        except Trouble:
            raise reader.mismatch(value, self.go) from None

    def read_over(self, value: Any, old: Any) -> Any:
        """As ``read``, of a new version of the canonical ``old``: parts of it that come again are kept as they are,
        which costs nothing and lets whoever compares the two versions see at once that they are the same."""
        return old if value is old else self.read(value)

    def zero(self) -> Any:
        """What is written for a field of this type that is always written."""
        return None


class Scalar(Type):
    __slots__ = ("_zero", "read")
    read: Callable[[Any], Any]  # type: ignore[assignment]  # the function itself: scalars are most of what is read

    def __init__(self, go: str, read: Callable[[Any], Any], zero: Any) -> None:
        self.kind, self.go, self.atomic = "scalar", go, True
        self.read, self._zero = read, zero

    def zero(self) -> Any:
        return self._zero


class Any_(Type):
    """Whatever it is: kept, and compared as far as its own shape goes."""

    __slots__ = ()

    def __init__(self) -> None:
        self.kind, self.go, self.atomic = "any", "interface {}", False

    def read(self, value: Any) -> Any:
        if type(value) is dict:
            return {k: self.read(v) for k, v in value.items()}
        if type(value) in (list, tuple):
            return [self.read(v) for v in value]
        return value


class Map(Type):
    __slots__ = ("element",)

    def __init__(self, go: str, element: Type, atomic: bool = False) -> None:
        self.kind, self.go, self.atomic, self.element = "map", go, atomic, element

    def read(self, value: Any) -> Any:
        if type(value) is not dict:
            raise Trouble
        read, zero = self.element.read, self.element.zero
        return {k: zero() if v is None else read(v) for k, v in value.items()}

    def read_over(self, value: Any, old: Any) -> Any:
        if value is old:
            return old
        if type(value) is not dict or type(old) is not dict:
            return self.read(value)
        over, zero = self.element.read_over, self.element.zero
        return {k: zero() if v is None else over(v, old.get(k)) for k, v in value.items()}

    def inspect(self, value: Any, path: str, reader: Reader) -> Any:
        if not isinstance(value, dict):
            raise reader.mismatch(value, self.go)
        found = {}
        for key, item in value.items():
            found[key] = self.element.zero() if item is None else self.element.inspect(item, f"{path}.{key}", reader)
        return found


class List(Type):
    """``keys``: the items are told apart by these fields; ``unique``: by their value; neither: the list is one."""

    __slots__ = ("element", "keys", "merge_key", "merges", "unique")

    def __init__(self, go: str, element: Type, traits: Json) -> None:
        self.kind, self.go, self.element = "list", go, element
        how = traits.get("list")
        strategy = traits.get("patch", "")
        self.merges = "merge" in strategy
        self.merge_key: str = traits.get("merge_key", "")
        self.keys: tuple[str, ...] = tuple(traits.get("keys", ())) if how == "map" else ()
        self.unique = how == "set"
        if how is None and self.merges:
            self.keys, self.unique = ((self.merge_key,) if self.merge_key else ()), not self.merge_key
        self.atomic = not self.keys and not self.unique

    def read(self, value: Any) -> Any:
        if type(value) not in (list, tuple):
            raise Trouble
        read = self.element.read
        return [read(v) for v in value]

    def read_over(self, value: Any, old: Any) -> Any:
        if value is old:
            return old
        if type(value) is not list or type(old) is not list:
            return self.read(value)
        read, known = self.element.read, {id(item) for item in old}
        return [v if id(v) in known and v is not None else read(v) for v in value]

    def inspect(self, value: Any, path: str, reader: Reader) -> Any:
        if not isinstance(value, list | tuple):
            raise reader.mismatch(value, self.go)
        found = []
        for i, item in enumerate(value):
            if item is None:
                found.append(self.element.zero())
            else:
                found.append(self.element.inspect(item, f"{path}[{i}]", reader))
        return found


NOTHING: Json = {}
"""No version before this one."""


@dataclass(slots=True)
class Field:
    name: str
    type: Type
    pointer: bool
    """Also of what stays when it is empty: a pointer, or a struct."""
    omitzero: bool
    replaces: bool
    """A strategic patch replaces the value whole."""


class Struct(Type):
    __slots__ = ("_zero", "always", "fields")

    def __init__(self, go: str, atomic: bool) -> None:
        self.kind, self.go, self.atomic = "struct", go, atomic
        self.fields: dict[str, Field] = {}
        self.always: tuple[tuple[str, Type], ...] = ()
        self._zero: Json | None = None

    def read(self, value: Any) -> Any:
        return self.read_afresh(value, NOTHING)

    def read_over(self, value: Any, old: Any) -> Any:
        return old if value is old else self.read_afresh(value, old if type(old) is dict else NOTHING)

    def read_afresh(self, value: Any, old: Json) -> Any:
        """Into a new object, whose parts may be those of ``old``."""
        if type(value) is not dict:
            raise Trouble
        found = {}
        fields = self.fields
        for key, item in value.items():
            known = fields.get(key)
            if known is None:
                raise Trouble
            if item is None:
                continue
            if old:
                before = old.get(key)
                if before is item:  # it is canonical, or it would not be there
                    found[key] = item
                    continue
                read = known.type.read_over(item, before)
            else:
                read = known.type.read(item)
            if read or known.pointer:
                if not read and known.omitzero:
                    continue
                found[key] = read
        for key, type_ in self.always:
            if key not in found:
                found[key] = type_.zero()
        return found

    def inspect(self, value: Any, path: str, reader: Reader) -> Any:
        if not isinstance(value, dict):
            raise reader.mismatch(value, self.go)
        found, outer = {}, reader.struct
        for key, item in value.items():
            at = f"{path}.{key}" if path else key
            known = self.fields.get(key)
            if known is None:
                reader.unknown.append(at)
                continue
            if item is None:
                continue
            reader.struct = self.go.rpartition(".")[2]
            reader.fields.append(key)
            read = known.type.inspect(item, at, reader)
            reader.fields.pop()
            reader.struct = outer
            if read or (known.pointer and not known.omitzero):
                found[key] = read
        for key, type_ in self.always:
            if key not in found:
                found[key] = type_.zero()
        return found

    def zero(self) -> Any:
        return {key: type_.zero() for key, type_ in self.always}

    def zero_once(self) -> Json:
        """The same, to look at only."""
        if self._zero is None:
            self._zero = self.zero()
        return self._zero


def _json_name(value: Any, go: str) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return f"number {json.dumps(value)}" if go.endswith(("int32", "int64")) else "number"
    if isinstance(value, dict):
        return "object"
    return "array" if isinstance(value, list | tuple) else "string" if isinstance(value, str) else "null"
