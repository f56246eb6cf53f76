"""What an HTTP request asks for: its place in the API, its parameters and its body."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import yaml
from aiohttp import web

from fakes.kube.api import Write
from fakes.kube.kinds import KINDS, Kind
from fakes.kube.protobuf import MAGIC, decode
from fakes.kube.status import bad_request, failure, no_such_path, unsupported_media_type
from harness.kube.port import PatchType

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


def parse_target(group: str, version: str, steps: list[str]) -> Target:
    """``steps`` are the parts of the path after the version."""
    namespace: str | None = None
    if steps[0] == "namespaces" and len(steps) > 2 and steps[2] not in ("status", "finalize"):
        namespace, steps = steps[1], steps[2:]
    kind = KINDS.get((group, steps[0]))
    if kind is None or kind.resource.version != version or (namespace and not kind.resource.namespaced):
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
    if any(value not in ("", "All") for value in dry_run):
        raise failure(422, "Invalid", f'dryRun: Unsupported value: "{dry_run[0]}": supported values: "All"', {})
    manager = request.query.get("fieldManager") or request.headers.get("User-Agent", "").partition("/")[0]
    return Write(manager[:128], "All" in dry_run, operation)


async def read_body(request: web.Request) -> Any:
    """JSON whatever the header says (some clients send none), protobuf as kubectl does, YAML; None when empty."""
    data = await request.read()
    if not data:
        return None
    if data.startswith(MAGIC) or request.content_type == _PROTOBUF:
        return decode(data)
    if "yaml" in request.content_type:
        return _yaml(data)
    try:
        return _not_too_deep(json.loads(data, parse_constant=_no_constant))
    except (ValueError, RecursionError) as e:
        raise bad_request(f"the object provided is unrecognized (must be of type JSON, YAML or protobuf): {e}") from e


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
