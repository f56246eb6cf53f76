"""What an HTTP request asks for: its place in the API, its parameters and its body."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml
from aiohttp import web

from fakes.kube.api import Write
from fakes.kube.kinds import Kind, Kinds
from fakes.kube.protobuf import MAGIC, decode
from fakes.kube.reading import strict_error
from fakes.kube.status import (
    Cause,
    bad_request,
    failure,
    no_such_path,
    too_long,
    unsupported,
    unsupported_media_type,
)
from harness.kube.port import ApiError, PatchType

APPLY = "application/apply-patch+yaml"
_DEEPEST = 100
_PROTOBUF = "application/vnd.kubernetes.protobuf"


@dataclass(frozen=True, slots=True)
class Target:
    """A path under /api/v1 or /apis/GROUP/VERSION."""

    kind: Kind
    namespace: str | None = None
    name: str | None = None
    subresource: str | None = None
    rest: tuple[str, ...] = field(default=())


def parse_target(kinds: Kinds, group: str, version: str, steps: list[str]) -> Target:
    """``steps`` are the parts of the path after the version."""
    namespace: str | None = None
    if steps[0] == "namespaces" and len(steps) > 2 and steps[2] not in ("status", "finalize"):
        namespace, steps = steps[1], steps[2:]
    kind = kinds.served.get((group, version, steps[0]))
    if kind is None or (namespace and not kind.resource.namespaced):
        raise no_such_path()
    name = steps[1] if len(steps) > 1 else None
    if name and kind.resource.namespaced and not namespace:
        raise no_such_path()
    return Target(kind, namespace, name, steps[2] if len(steps) > 2 else None, tuple(steps[3:]))


def is_true(value: str | None) -> bool:
    return value is not None and value.lower() not in ("false", "0")


def integer(request: web.Request, name: str) -> int | None:
    text = request.query.get(name)
    if text is None or text == "":
        return None
    if not text.isascii() or not text.lstrip("-").isdigit() or len(text) > 18:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax ({name})')
    return int(text)


def write_of(request: web.Request, operation: str = "Update") -> Write:
    """The field manager defaults to the start of the User-Agent, as on a real server."""
    dry_run = request.query.getall("dryRun", [])
    options = _OPTIONS[request.method]
    if any(value != "All" for value in dry_run):
        raise bad_option(options, unsupported("dryRun", dry_run[0], ["All"]))
    validation = request.query.get("fieldValidation") or "Warn"
    if validation not in _VALIDATIONS:
        raise bad_option(options, unsupported("fieldValidation", validation, _VALIDATIONS))
    stated = request.query.get("fieldManager", "")
    if len(stated) > _LONGEST_MANAGER:
        raise bad_option(options, too_long("fieldManager", stated, _LONGEST_MANAGER))
    manager = stated or request.headers.get("User-Agent", "").partition("/")[0]
    return Write(manager[:_LONGEST_MANAGER], "All" in dry_run, operation, validation)


_OPTIONS = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions", "DELETE": "DeleteOptions"}
_VALIDATIONS = ("Ignore", "Warn", "Strict")
_LONGEST_MANAGER = 128


def bad_option(options: str, cause: Cause) -> ApiError:
    message = f'{options}.meta.k8s.io "" is invalid: {cause}'
    details = {"group": "meta.k8s.io", "kind": options, "causes": [cause.to_json()]}
    return failure(422, "Invalid", message, details)


async def read_body(request: web.Request, write: Write | None = None, kind: Kind | None = None) -> Any:
    """JSON whatever the header says (some clients send none), protobuf as kubectl does, YAML; None when empty.

    With ``write`` a field that is written twice is reported as it asks, for an object of ``kind``."""
    data = await request.read()
    if not data:
        return None
    if data.startswith(MAGIC) or request.content_type == _PROTOBUF:
        return decode(data)
    if (
        request.content_type not in _READABLE
        and request.method in ("POST", "PUT")
        and "Content-Type" in request.headers
    ):
        raise unsupported_media_type(_ACCEPTED)
    if "yaml" in request.content_type:
        return _yaml(data)
    doubled: dict[int, list[str]] = {}
    try:
        found = _not_too_deep(json.loads(data, parse_constant=_no_constant, object_pairs_hook=_noting(doubled)))
    except (ValueError, RecursionError) as e:
        raise bad_request(_unreadable(kind, data, e)) from e
    if doubled and write is not None and kind is not None:
        _report(kind, write, [f'duplicate field "{p}"' for p in _doubled_paths(found, doubled, "")])
    return found


_READABLE = frozenset({"application/json", "application/yaml", "text/plain", "application/octet-stream"})
_ACCEPTED = ("application/json", "application/yaml", _PROTOBUF)


def _noting(doubled: dict[int, list[str]]) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            names = [name for name, _ in pairs]
            doubled[id(found)] = [n for n in found if names.count(n) > 1]
        return found

    return build


def _doubled_paths(value: Any, doubled: dict[int, list[str]], path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name in doubled.get(id(value), ()):
            yield f"{path}.{name}" if path else name
        for name, item in value.items():
            yield from _doubled_paths(item, doubled, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _doubled_paths(item, doubled, f"{path}[{i}]")


def _report(kind: Kind, write: Write, said: list[str]) -> None:
    if write.validation == "Strict":
        raise strict_error(kind.resource.kind, kind.resource.version, said)
    if write.validation == "Warn":
        write.warnings.extend(said)


def _unreadable(kind: Kind | None, data: bytes, error: Exception) -> str:
    what = kind.resource.kind if kind else "JSON, YAML or protobuf"
    return (
        f"the object provided is unrecognized (must be of type {what}): couldn't get version/kind; "
        f"json parse error: {error}"
    )


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _not_too_deep(body: Any) -> Any:
    """Level by level, so that a hostile body cannot exhaust the stack of whoever walks it later."""
    level = [body]
    for _ in range(_DEEPEST):
        level = [item for value in level for item in _children(value)]
        if not level:
            return body
    raise ValueError(f"nested more than {_DEEPEST} levels deep")


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _yaml(data: bytes) -> Any:
    try:
        return _not_too_deep(json.loads(json.dumps(yaml.safe_load(data), default=str)))
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as e:
        raise bad_request(f"error decoding YAML: {e}") from e


def patch_type(request: web.Request) -> PatchType | None:
    """None is server-side apply."""
    content_type = request.content_type
    if content_type == APPLY:
        return None
    try:
        return PatchType(content_type)
    except ValueError:
        raise unsupported_media_type([*PatchType, APPLY]) from None
