"""The types of the served kinds, made from what the Go sources say of them (``types.json``)."""

from __future__ import annotations

from functools import cache
from typing import Any

from fakes.kube.schema.model import Any_, Field, Json, List, Map, Scalar, Struct, Type
from fakes.kube.schema.raw import raw_types
from fakes.kube.schema.scalars import (
    read_bool,
    read_bytes,
    read_float,
    read_int_or_text,
    read_integer,
    read_quantity,
    read_text,
    read_time,
)

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
            found.fields[entry["name"]] = Field(
                entry["name"], type_, is_pointer or is_struct or bool(entry.get("always")),
                bool(entry.get("omitzero")), entry.get("patch") == "replace",
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


@cache
def _builder() -> _Builder:
    return _Builder(raw_types())


@cache
def type_of(name: str) -> Struct:
    """The struct of a full name such as ``core/v1.Pod``; a root also has ``kind`` and ``apiVersion``."""
    inner = _builder().struct(name)
    found = Struct(inner.go, False)
    text = _builder().type("string", {})
    root = {n: Field(n, text, False, False, False) for n in ("kind", "apiVersion")}
    found.fields, found.always = root | inner.fields, inner.always
    return found


class _OpenFields(dict[str, Field]):
    """Any further field is there too, and may hold anything."""

    def __missing__(self, name: str) -> Field:
        return Field(name, ANY, True, False, False)

    def get(self, name: str, default: Any = None) -> Field:
        return self[name]


@cache
def custom_type(kind: str) -> Struct:
    """Of a kind from a CRD: its metadata is typed, all else is whatever its authors write."""
    found = Struct(kind, False)
    text = _builder().type("string", {})
    found.fields = _OpenFields((n, Field(n, text, False, False, False)) for n in ("kind", "apiVersion"))
    meta = _builder().struct("meta/v1.ObjectMeta")
    found.fields["metadata"] = Field("metadata", meta, True, False, False)
    found.always = (("metadata", meta),)
    return found
