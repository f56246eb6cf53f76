"""From a body to an object of a kind: types, unknown fields and what becomes of them, as the real decoder has it."""

from __future__ import annotations

import json
from typing import Any

from fakes.kube.kinds import Kind
from fakes.kube.patch import go_map
from fakes.kube.schema.model import NOTHING, Reader
from fakes.kube.schema.scalars import Mismatch, Trouble
from fakes.kube.status import bad_request, bad_value, failure, invalid
from harness.kube.port import ApiError, Json, Resource


def read_body_as(kind: Kind, body: Any, validation: str, warnings: list[str], live: Json = NOTHING) -> Json:
    """A new object, canonical and without what the kind does not have. ``live``: the version before it, whose very
    parts are in it where they come again."""
    try:
        return _read_over(kind, live, body)
    except (Trouble, Mismatch):
        return _inspected(kind, body, validation, warnings)


def _read_over(kind: Kind, live: Json, body: Any) -> Json:
    """The object and its metadata are new in any case, for they are still to be written into."""
    found: Json = kind.type.read_afresh(body, live)
    if live and found.get("metadata") is live["metadata"]:
        found["metadata"] = dict(found["metadata"])
    return found


def read_patched(
    kind: Kind, live: Json, body: Any, validation: str, warnings: list[str], strategic: Any = None
) -> Json:
    """As ``read_body_as``, of a patched ``live``: what the patch has not touched is the very part of ``live``.

    ``strategic`` is the patch itself where it was one, which is what a refusal then repeats.
    """
    try:
        return _read_over(kind, live, body)
    except (Trouble, Mismatch):
        return _inspected(kind, body, validation, warnings, patched=True, patch=strategic)


def _inspected(
    kind: Kind, body: Any, validation: str, warnings: list[str], *, patched: bool = False, patch: Any = None
) -> Json:
    reader = Reader()
    name, version = kind.resource.kind, kind.resource.version
    try:
        found: Json = kind.type.inspect(body, "", reader)
    except Mismatch as e:
        if patched:
            raise unreadable_patch(patch if patch is not None else body, str(e)) from None
        raise bad_request(f'{name} in version "{version}" cannot be handled as a {name}: {e}') from None
    if reader.unknown and not kind.custom:
        said = [f'unknown field "{path}"' for path in reader.unknown]
        if validation == "Strict" and patched:
            raise unreadable_patch(patch if patch is not None else body, f"strict decoding error: {', '.join(said)}")
        if validation == "Strict":
            raise strict_error(name, version, said)
        if validation == "Warn":
            warnings.extend(said)
    return found


def unreadable_patch(body: Any, why: str) -> ApiError:
    """What the patch has made of the object is no object of its kind."""
    is_whole = isinstance(body, dict) and "metadata" in body and "kind" in body
    cause = bad_value("patch", json.dumps(body, separators=(",", ":")) if is_whole else go_map(body), why)
    return failure(422, "Invalid", f' "" is invalid: {cause}', {"causes": [cause.to_json()]})


def check_custom(kind: Kind, body: Any) -> None:
    """A custom object must say what it is: nothing else tells its decoder."""
    if not isinstance(body, dict) or (not body.get("kind") and not body.get("apiVersion")):
        return  # in process the port says it; over HTTP ``requests`` has asked for it
    resource = kind.resource
    if body.get("kind") and body["kind"] != resource.kind:
        cause = bad_value("kind", body["kind"], f"must be {resource.kind}")
        meta = body.get("metadata") if isinstance(body.get("metadata"), dict) else {}
        stated = Resource(resource.group, resource.version, resource.plural, str(body["kind"]), resource.namespaced)
        raise invalid(stated, str((meta or {}).get("name", "")), [cause])
    if body.get("apiVersion") and body["apiVersion"] != resource.api_version:
        raise bad_request(
            f"the API version in the data ({body['apiVersion']}) does not match the expected API version "
            f"({resource.api_version})"
        )


def strict_error(kind: str, version: str, said: list[str]) -> ApiError:
    text = ", ".join(said)
    return failure(
        400,
        "BadRequest",
        f'{kind} in version "{version}" cannot be handled as a {kind}: strict decoding error: {text}',
    )
