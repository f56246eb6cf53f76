"""Answers that are not a success, as the API server words them: one Status object each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.kube.port import ApiError, Json, Resource, api_error


@dataclass(frozen=True, slots=True)
class Cause:
    """One field of an invalid object."""

    field: str
    reason: str
    message: str

    def to_json(self) -> Json:
        return {"reason": self.reason, "message": self.message, "field": self.field}

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


def required(field: str, detail: str = "") -> Cause:
    return Cause(field, "FieldValueRequired", f"Required value: {detail}" if detail else "Required value")


def bad_value(field: str, value: Any, detail: str) -> Cause:
    return Cause(field, "FieldValueInvalid", f"Invalid value: {_shown(value)}: {detail}")


def unsupported(field: str, value: Any, supported: Sequence[str]) -> Cause:
    known = ", ".join(f'"{s}"' for s in supported)
    return Cause(field, "FieldValueNotSupported", f"Unsupported value: {_shown(value)}: supported values: {known}")


def duplicate(field: str, value: Any) -> Cause:
    return Cause(field, "FieldValueDuplicate", f"Duplicate value: {_shown(value)}")


def missing(field: str, value: Any) -> Cause:
    """A name that refers to nothing."""
    return Cause(field, "FieldValueNotFound", f"Not found: {_shown(value)}")


def too_long(field: str, value: Any, limit: int) -> Cause:
    return Cause(field, "FieldValueTooLong", f"Too long: may not be more than {limit} bytes")


def forbidden_field(field: str, detail: str) -> Cause:
    return Cause(field, "FieldValueForbidden", f"Forbidden: {detail}")


def _shown(value: Any) -> str:
    """Strings as Go quotes them, everything else as JSON."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def status_body(code: int, reason: str, message: str, details: Json | None = None) -> Json:
    body: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    if message:
        body["message"] = message
    if reason:
        body["reason"] = reason
    if details is not None:
        body["details"] = details
    body["code"] = code
    return body


def failure(code: int, reason: str, message: str, details: Json | None = None) -> ApiError:
    return api_error(code, status_body(code, reason, message, details))


def success_body(code: int = 200, details: Json | None = None) -> Json:
    """What an eviction or a completed delete answers."""
    body: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details:
        body["details"] = details
    if code != 200:
        body["code"] = code
    return body


def qualified(resource: Resource) -> str:
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


def _details(resource: Resource, name: str, kind: str | None = None) -> Json:
    details: Json = {"name": name} if name else {}
    if resource.group:
        details["group"] = resource.group
    details["kind"] = kind or resource.plural
    return details


def not_found(resource: Resource, name: str) -> ApiError:
    return failure(404, "NotFound", f'{qualified(resource)} "{name}" not found', _details(resource, name))


def already_exists(resource: Resource, name: str, *, ending: bool = False) -> ApiError:
    """``ending``: what is there is being deleted."""
    message = f'{qualified(resource)} "{name}" already exists'
    if ending:
        message = f"object is being deleted: {message}"
    return failure(409, "AlreadyExists", message, _details(resource, name))


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def conflict(resource: Resource, name: str, detail: str = MODIFIED, subresource: str | None = None) -> ApiError:
    where = f"{qualified(resource)}/{subresource}" if subresource else qualified(resource)
    message = f'Operation cannot be fulfilled on {where} "{name}": {detail}'
    return failure(409, "Conflict", message, _details(resource, name))


def precondition_failed(resource: Resource, name: str, what: str, wanted: str, found: str) -> ApiError:
    """``what`` is UID or ResourceVersion."""
    after = "deleted and then recreated" if what == "UID" else "modified"
    detail = (
        f"the {what} in the precondition ({wanted}) does not match the {what} in record ({found}). "
        f"The object might have been {after}"
    )
    message = f'Operation cannot be fulfilled on {qualified_kind(resource)} "{name}": {detail}'
    return failure(409, "Conflict", message, _details(resource, name, resource.kind))


def not_this_object(resource: Resource, meta: Json, wanted: str) -> ApiError:
    """A PUT for the object of another uid, in the words of the storage that finds it out."""
    place = "/".join(part for part in (resource.plural, meta.get("namespace", ""), meta["name"]) if part)
    detail = (
        f"StorageError: invalid object, Code: 4, Key: /registry/{place}, ResourceVersion: 0, AdditionalErrorMsg: "
        f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {meta['uid']}"
    )
    return conflict(resource, meta["name"], detail)


def version_required(resource: Resource, name: str) -> ApiError:
    cause = bad_value("metadata.resourceVersion", 0, "must be specified for an update")
    details = _details(resource, name) | {"causes": [cause.to_json()]}
    return failure(422, "Invalid", f'{qualified(resource)} "{name}" is invalid: {cause}', details)


def invalid(resource: Resource, name: str, causes: Sequence[Cause]) -> ApiError:
    full = qualified_kind(resource)
    text = str(causes[0]) if len(causes) == 1 else "[" + ", ".join(str(c) for c in causes) + "]"
    details = _details(resource, name, resource.kind) | {"causes": [c.to_json() for c in causes]}
    return failure(422, "Invalid", f'{full} "{name}" is invalid: {text}', details)


def qualified_kind(resource: Resource) -> str:
    return f"{resource.kind}.{resource.group}" if resource.group else resource.kind


def bad_option(options: str, *causes: Cause) -> ApiError:
    text = str(causes[0]) if len(causes) == 1 else "[" + ", ".join(str(c) for c in causes) + "]"
    details = {"group": "meta.k8s.io", "kind": options, "causes": [c.to_json() for c in causes]}
    return failure(422, "Invalid", f'{options}.meta.k8s.io "" is invalid: {text}', details)


def bad_request(message: str) -> ApiError:
    return failure(400, "BadRequest", message)


def forbidden(resource: Resource, name: str, why: str) -> ApiError:
    message = f'{qualified(resource)} "{name}" is forbidden: {why}'
    return failure(403, "Forbidden", message, _details(resource, name))


def expired(detail: str) -> ApiError:
    return failure(410, "Expired", detail)


def version_too_large(wanted: int, current: int) -> ApiError:
    details = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }
    return failure(504, "Timeout", f"Too large resource version: {wanted}, current: {current}", details)


def unsupported_media_type(accepted: Sequence[str]) -> ApiError:
    listed = ", ".join(accepted)
    message = f"the body of the request was in an unknown format - accepted media types include: {listed}"
    return failure(415, "UnsupportedMediaType", message)


def method_not_allowed(message: str = "the server does not allow this method on the requested resource") -> ApiError:
    return failure(405, "MethodNotAllowed", message, {})


def no_such_path() -> ApiError:
    return failure(404, "NotFound", "the server could not find the requested resource", {})


def not_served(what: str) -> ApiError:
    """For what real clusters do and this embedded one does not."""
    return failure(501, "NotImplemented", f"the embedded Kubernetes API does not serve {what}")
