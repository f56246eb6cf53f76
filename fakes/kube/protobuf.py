"""Request bodies in Kubernetes' protobuf, for the few kinds that kubectl ≥ 1.32 insists on sending that way.

The envelope is the magic and an Unknown{1: TypeMeta{1: apiVersion, 2: kind}, 2: raw}; ``raw`` is read by the field
numbers below. Answers are always JSON, which every client takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fakes.kube.status import bad_request, failure
from harness.kube.port import Json

MAGIC = b"k8s\x00"


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    kind: str = "text"  # text | int | bool | map | message
    many: bool = False
    fields: Mapping[int, Field] | None = None


def _message(name: str, fields: Mapping[int, Field], many: bool = False) -> Field:
    return Field(name, "message", many, fields)


_META = {
    1: Field("name"),
    2: Field("generateName"),
    3: Field("namespace"),
    11: Field("labels", "map"),
    12: Field("annotations", "map"),
}
_CONTAINER_PORT = {
    1: Field("name"),
    2: Field("hostPort", "int"),
    3: Field("containerPort", "int"),
    4: Field("protocol"),
}
_ENV = {1: Field("name"), 2: Field("value")}
_CONTAINER = {
    1: Field("name"),
    2: Field("image"),
    3: Field("command", many=True),
    4: Field("args", many=True),
    5: Field("workingDir"),
    6: _message("ports", _CONTAINER_PORT, many=True),
    7: _message("env", _ENV, many=True),
    14: Field("imagePullPolicy"),
}
_POD_SPEC = {
    2: _message("containers", _CONTAINER, many=True),
    3: Field("restartPolicy"),
    4: Field("terminationGracePeriodSeconds", "int"),
    6: Field("dnsPolicy"),
    7: Field("nodeSelector", "map"),
    8: Field("serviceAccountName"),
    10: Field("nodeName"),
    19: Field("schedulerName"),
    24: Field("priorityClassName"),
}
_TEMPLATE = {1: _message("metadata", _META), 2: _message("spec", _POD_SPEC)}
_DEPLOYMENT_SPEC = {
    1: Field("replicas", "int"),
    2: _message("selector", {1: Field("matchLabels", "map")}),
    3: _message("template", _TEMPLATE),
}
_RESOURCE_ATTRIBUTES = {1: Field("namespace"), 2: Field("verb"), 3: Field("group"), 4: Field("version"),
                        5: Field("resource"), 6: Field("subresource"), 7: Field("name")}  # fmt: skip
_PATH_ATTRIBUTES = {1: Field("path"), 2: Field("verb")}
_REVIEW_SPEC = {
    1: _message("resourceAttributes", _RESOURCE_ATTRIBUTES),
    2: _message("nonResourceAttributes", _PATH_ATTRIBUTES),
}
_OBJECT_META = _message("metadata", _META)

_KINDS: dict[str, Mapping[int, Field]] = {
    "Namespace": {1: _OBJECT_META},
    "ConfigMap": {1: _OBJECT_META, 2: Field("data", "map")},
    "ServiceAccount": {1: _OBJECT_META},
    "Deployment": {1: _OBJECT_META, 2: _message("spec", _DEPLOYMENT_SPEC)},
    "SelfSubjectAccessReview": {1: _OBJECT_META, 2: _message("spec", _REVIEW_SPEC)},
    "SelfSubjectRulesReview": {1: _OBJECT_META, 2: _message("spec", {1: Field("namespace")})},
    "SelfSubjectReview": {1: _OBJECT_META},
    "DeleteOptions": {1: Field("gracePeriodSeconds", "int"), 3: Field("orphanDependents", "bool"),
                      4: Field("propagationPolicy"), 5: Field("dryRun", many=True)},
}  # fmt: skip


def decode(data: bytes) -> Json:
    if not data.startswith(MAGIC):
        raise bad_request("provided data does not appear to be a protobuf message, expected prefix k8s\\0")
    try:
        return _decode(data)
    except (IndexError, UnicodeDecodeError) as e:
        raise bad_request(f"the protobuf body is cut off or malformed: {e}") from e


def _decode(data: bytes) -> Json:
    envelope = dict(_entries(data[len(MAGIC) :]))
    type_meta, raw = envelope.get(1, b""), envelope.get(2, b"")
    if not isinstance(type_meta, bytes) or not isinstance(raw, bytes):
        raise bad_request("the protobuf envelope is malformed")
    names = {number: _text(value) for number, value in _entries(type_meta)}
    kind = names.get(2, "")
    fields = _KINDS.get(kind)
    if fields is None:
        known = ", ".join(sorted(_KINDS))
        text = f"the embedded Kubernetes API reads {kind or 'this'} as JSON only; as protobuf it reads {known}"
        raise failure(415, "UnsupportedMediaType", text)
    return {"kind": kind, "apiVersion": names.get(1, "v1")} | _object(raw, fields)


def _object(data: bytes, fields: Mapping[int, Field]) -> Json:
    found: Json = {}
    for number, value in _entries(data):
        field = fields.get(number)
        if field is None:
            continue
        if field.kind == "map":
            pair = {n: _text(v) for n, v in _entries(_bytes(value))}
            found.setdefault(field.name, {})[pair.get(1, "")] = pair.get(2, "")
        elif field.many:
            found.setdefault(field.name, []).append(_value(field, value))
        elif (read := _value(field, value)) != "":
            found[field.name] = read
    return found


def _value(field: Field, value: int | bytes) -> Any:
    match field.kind:
        case "message":
            return _object(_bytes(value), field.fields or {})
        case "int":
            return _signed(value)
        case "bool":
            return bool(_signed(value))
        case _:
            return _text(value)


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
