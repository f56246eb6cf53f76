"""Request bodies in Kubernetes' protobuf, which kubectl ≥ 1.32 insists on for some commands.

The envelope is the magic and an Unknown{1: TypeMeta{1: apiVersion, 2: kind}, 2: raw}; ``raw`` is read by the field
numbers of the schema. Answers are always JSON, which every client takes.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from fakes.kube.schema.raw import full_name, raw_types
from fakes.kube.status import bad_request, failure
from harness.kube.port import Json

MAGIC = b"k8s\x00"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class _Message:
    """Fields by number; ``inner`` are structs that Go embeds: messages of their own whose fields are the outer's."""

    fields: dict[int, tuple[str, str]] = field(default_factory=dict)
    inner: dict[int, dict[int, tuple[str, str]]] = field(default_factory=dict)


@cache
def _message(name: str) -> _Message:
    found = _Message()
    for entry in raw_types()[name]["fields"]:
        number = entry.get("number")
        if number is not None:
            place = found.inner.setdefault(entry["via"], {}) if "via" in entry else found.fields
            place[number] = entry["name"], entry["type"]
    return found


def decode(data: bytes) -> Json:
    if not data.startswith(MAGIC):
        raise bad_request("provided data does not appear to be a protobuf message, expected prefix k8s\\0")
    try:
        return _decode(data)
    except (IndexError, UnicodeDecodeError, OverflowError, struct.error, RecursionError) as e:
        raise bad_request(f"the protobuf body is cut off or malformed: {e}") from e


def _decode(data: bytes) -> Json:
    envelope = dict(_entries(data[len(MAGIC) :]))
    type_meta, raw = envelope.get(1, b""), envelope.get(2, b"")
    if not isinstance(type_meta, bytes) or not isinstance(raw, bytes):
        raise bad_request("the protobuf envelope is malformed")
    names = {number: _text(value) for number, value in _entries(type_meta)}
    version, kind = names.get(1, "v1"), names.get(2, "")
    name = full_name(version, kind)
    if name is None:
        text = f"the embedded Kubernetes API reads {kind or 'this'} of {version} as JSON only"
        raise failure(415, "UnsupportedMediaType", text)
    return {"kind": kind, "apiVersion": version} | _object(raw, name)


def _object(data: bytes, name: str) -> Json:
    message = _message(name)
    found: Json = {}
    for number, value in _entries(data):
        if number in message.inner:
            for inner_number, inner_value in _entries(_bytes(value)):
                _put(found, message.inner[number].get(inner_number), inner_value)
        else:
            _put(found, message.fields.get(number), value)
    return found


def _put(found: Json, known: tuple[str, str] | None, value: int | bytes) -> None:
    if known is None:
        return
    name, type_ = known
    type_ = _plain(type_)
    if type_.startswith("map[string]"):
        pair = dict(_entries(_bytes(value)))
        found.setdefault(name, {})[_text(pair.get(1, b""))] = _value(type_[11:], pair.get(2, b""))
    elif type_.startswith("[]") and type_ != "[]byte":
        found.setdefault(name, []).append(_value(type_[2:], value))
    else:
        found[name] = _value(type_, value)


def _plain(type_: str) -> str:
    """Without pointers and other names of the same thing."""
    type_ = type_.lstrip("*")
    alias = raw_types().get(type_, {}).get("alias")
    return _plain(alias) if alias else type_


def _value(type_: str, value: int | bytes) -> Any:
    type_ = _plain(type_)
    match type_:
        case "string" | "duration":
            return _text(value)
        case "bool":
            return bool(_signed(value))
        case "int32" | "int64":
            return _signed(value)
        case "[]byte":
            return base64.b64encode(_bytes(value)).decode()
        case "quantity":
            return _text(dict(_entries(_bytes(value))).get(1, b""))
        case "int-or-string":
            parts = dict(_entries(_bytes(value)))
            return _text(parts.get(3, b"")) if parts.get(1) else _signed(parts.get(2, 0))
        case "time" | "microtime":
            return _time(dict(_entries(_bytes(value))), type_ == "microtime")
        case "any" | "float64":
            return None
    return _object(_bytes(value), type_)


def _time(parts: dict[int, int | bytes], micro: bool) -> str | None:
    seconds, nanos = _signed(parts.get(1, 0)), _signed(parts.get(2, 0))
    if not seconds and not nanos:
        return None
    moment = _EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ" if micro else "%Y-%m-%dT%H:%M:%SZ")


def _entries(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """(field number, value): varints as int, length-delimited fields as bytes; fixed-width ones are passed over."""
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        number, wire = key >> 3, key & 7
        match wire:
            case 0:
                value, place = _varint(data, place)
                yield number, value
            case 2:
                size, place = _varint(data, place)
                if place + size > len(data):
                    raise IndexError("a field is longer than the body")
                yield number, data[place : place + size]
                place += size
            case 1 | 5:
                place += 8 if wire == 1 else 4
            case _:
                raise bad_request(f"the protobuf body has wire type {wire}, which is not in use")


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, place
        shift += 7


def _signed(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise bad_request("the protobuf body has a string where a number is needed")
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise bad_request("the protobuf body has a number where a message is needed")
    return value


def _text(value: int | bytes) -> str:
    return _bytes(value).decode()
