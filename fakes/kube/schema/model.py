"""The types of the served kinds, and reading a body as the real server's decoder does.

Reading gives the object as the real server would write it back: null is absent, a zero value of a field with
``omitempty`` is absent, a struct that is no pointer is there even when empty, quantities and times are in their
canonical form. Fields that the kind does not have are dropped and reported.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from fakes.kube.schema.raw import raw_types
from fakes.kube.schema.scalars import (
    Mismatch,
    Trouble,
    read_bool,
    read_bytes,
    read_float,
    read_int_or_text,
    read_integer,
    read_quantity,
    read_text,
    read_time,
)

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
    __slots__ = ("_read", "_zero")

    def __init__(self, go: str, read: Callable[[Any], Any], zero: Any) -> None:
        self.kind, self.go, self.atomic = "scalar", go, True
        self._read, self._zero = read, zero

    def read(self, value: Any) -> Any:
        return self._read(value)

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

    __slots__ = ("element", "keys", "merge_key", "merges", "retain_keys", "unique")

    def __init__(self, go: str, element: Type, traits: Json) -> None:
        self.kind, self.go, self.element = "list", go, element
        how = traits.get("list")
        strategy = traits.get("patch", "")
        self.merges = "merge" in strategy
        self.retain_keys = "retainKeys" in strategy
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
    retain_keys: bool
    replaces: bool
    """A strategic patch replaces the value whole."""


class Struct(Type):
    __slots__ = ("always", "fields")

    def __init__(self, go: str, atomic: bool) -> None:
        self.kind, self.go, self.atomic = "struct", go, atomic
        self.fields: dict[str, Field] = {}
        self.always: tuple[tuple[str, Type], ...] = ()

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
            read = known.type.read_over(item, old.get(key)) if old else known.type.read(item)
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


_SCALARS = {
    "string": (read_text, ""),
    "bool": (read_bool, False),
    "int32": (read_integer(32), 0),
    "int64": (read_integer(64), 0),
    "float64": (read_float, 0),
    "quantity": (read_quantity, "0"),
    "time": (read_time(False), None),
    "microtime": (read_time(True), None),
    "duration": (read_text, "0s"),
    "int-or-string": (read_int_or_text, 0),
}
_STRUCT_SCALARS = frozenset({"quantity", "time", "microtime", "duration", "int-or-string"})
_GO_NAMES = {"quantity": "resource.Quantity", "time": "v1.Time", "microtime": "v1.MicroTime",
             "duration": "v1.Duration", "int-or-string": "intstr.IntOrString"}  # fmt: skip
ANY = Any_()
BYTES = Scalar("[]uint8", read_bytes, None)


class _Builder:
    """Each named struct once, so that types that hold themselves end."""

    def __init__(self, raw: Json) -> None:
        self._raw = raw
        self._structs: dict[str, Struct] = {}

    def type(self, text: str, traits: Json, go: str = "") -> Type:
        if text.startswith("*"):
            return self.type(text[1:], traits)
        if text in ("[]byte",):
            return BYTES
        if text.startswith("[]"):
            element = self.type(text[2:], {})
            return List(go or f"[]{_go_name(text[2:])}", element, traits)
        if text.startswith("map[string]"):
            element = self.type(text[11:], {})
            name = go or f"map[string]{_go_name(text[11:])}"
            return Map(name, element, bool(traits.get("atomic")))
        if text in _SCALARS:
            read, zero = _SCALARS[text]
            return Scalar(go or _GO_NAMES.get(text, text), read, zero)
        if text == "any":
            return ANY
        found = self._raw[text]
        if "alias" in found:
            return self.type(found["alias"], traits, _go_name(text))
        return self.struct(text)

    def struct(self, name: str) -> Struct:
        if name in self._structs:
            return self._structs[name]
        raw = self._raw[name]
        found = Struct(_go_name(name), bool(raw.get("atomic")))
        self._structs[name] = found
        always = []
        for entry in raw["fields"]:
            type_ = self.type(entry["type"], entry)
            if entry.get("atomic") and isinstance(type_, Struct):
                type_ = _as_atomic(type_)
            is_pointer = entry["type"].startswith("*")
            is_struct = isinstance(type_, Struct) or self._plain(entry["type"]) in _STRUCT_SCALARS
            strategy = entry.get("patch", "")
            found.fields[entry["name"]] = Field(
                entry["name"], type_, is_pointer or is_struct or bool(entry.get("always")),
                bool(entry.get("omitzero")), "retainKeys" in strategy, strategy == "replace",
            )  # fmt: skip
            if (entry.get("always") or (is_struct and not is_pointer)) and not entry.get("omitzero"):
                always.append((entry["name"], _nil if is_pointer else type_))
        found.always = tuple(always)
        return found

    def _plain(self, text: str) -> str:
        text = text.lstrip("*")
        return self._plain(self._raw[text]["alias"]) if "alias" in self._raw.get(text, {}) else text


_nil = Scalar("nil", read_text, None)


def _as_atomic(type_: Struct) -> Struct:
    found = Struct(type_.go, True)
    found.fields, found.always = type_.fields, type_.always
    return found


def _go_name(text: str) -> str:
    for prefix in ("[]", "*", "map[string]"):
        if text.startswith(prefix):
            return prefix + _go_name(text[len(prefix) :])
    if text in _GO_NAMES:
        return _GO_NAMES[text]
    if text == "byte":
        return "uint8"
    package, _, name = text.rpartition(".")
    return f"{package.rpartition('/')[2]}.{name}" if package else text


def _json_name(value: Any, go: str) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return f"number {json.dumps(value)}" if go.endswith(("int32", "int64")) else "number"
    if isinstance(value, dict):
        return "object"
    return "array" if isinstance(value, list | tuple) else "string" if isinstance(value, str) else "null"


@cache
def _builder() -> _Builder:
    return _Builder(raw_types())


@cache
def type_of(name: str) -> Struct:
    """The struct of a full name such as ``core/v1.Pod``; a root also has ``kind`` and ``apiVersion``."""
    inner = _builder().struct(name)
    found = Struct(inner.go, False)
    text = _builder().type("string", {})
    root = {n: Field(n, text, False, False, False, False) for n in ("kind", "apiVersion")}
    found.fields, found.always = root | inner.fields, inner.always
    return found


class _OpenFields(dict[str, Field]):
    """Any further field is there too, and may hold anything."""

    def __missing__(self, name: str) -> Field:
        return Field(name, ANY, True, False, False, False)

    def get(self, name: str, default: Any = None) -> Field:
        return self[name]


@cache
def custom_type(kind: str) -> Struct:
    """Of a kind from a CRD: its metadata is typed, all else is whatever its authors write."""
    found = Struct(kind, False)
    text = _builder().type("string", {})
    found.fields = _OpenFields((n, Field(n, text, False, False, False, False)) for n in ("kind", "apiVersion"))
    meta = _builder().struct("meta/v1.ObjectMeta")
    found.fields["metadata"] = Field("metadata", meta, True, False, False, False)
    found.always = (("metadata", meta),)
    return found
