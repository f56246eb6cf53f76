"""From a body to an object of a kind: types, unknown fields and what becomes of them, as the real decoder has it."""

from __future__ import annotations

from typing import Any

from fakes.kube.kinds import Kind
from fakes.kube.schema.model import Reader
from fakes.kube.schema.scalars import Mismatch, Trouble
from fakes.kube.status import bad_request, failure
from harness.kube.port import ApiError, Json


def read_body_as(kind: Kind, body: Any, validation: str, warnings: list[str]) -> Json:
    """A new object, canonical and without what the kind does not have."""
    try:
        found: Json = kind.type.read(body)
    except (Trouble, Mismatch):
        return _inspected(kind, body, validation, warnings)
    return found


def read_patched(kind: Kind, live: Json, body: Any, validation: str, warnings: list[str]) -> Json:
    """As ``read_body_as``, of a patched ``live``: what the patch has not touched is the very part of ``live``."""
    if not isinstance(body, dict):
        return _inspected(kind, body, validation, warnings)
    fields = kind.type.fields
    found: Json = {}
    try:
        for key, item in body.items():
            if key != "metadata" and item is not None and live.get(key) is item:
                found[key] = item
            elif item is not None:
                read = fields[key].type.read(item)
                if read or fields[key].pointer:
                    found[key] = read
    except (Trouble, Mismatch, KeyError):
        return _inspected(kind, body, validation, warnings)
    for key, type_ in kind.type.always:
        if key not in found:
            found[key] = type_.zero()
    return found


def _inspected(kind: Kind, body: Any, validation: str, warnings: list[str]) -> Json:
    reader = Reader()
    name, version = kind.resource.kind, kind.resource.version
    try:
        found: Json = kind.type.inspect(body, "", reader)
    except Mismatch as e:
        raise bad_request(f'{name} in version "{version}" cannot be handled as a {name}: {e}') from None
    if reader.unknown and not kind.custom:
        said = [f'unknown field "{path}"' for path in reader.unknown]
        if validation == "Strict":
            raise strict_error(name, version, said)
        if validation == "Warn":
            warnings.extend(said)
    return found


def strict_error(kind: str, version: str, said: list[str]) -> ApiError:
    text = ", ".join(said)
    return failure(
        400,
        "BadRequest",
        f'{kind} in version "{version}" cannot be handled as a {kind}: strict decoding error: {text}',
    )
