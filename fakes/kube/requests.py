"""What an HTTP request asks for: its place in the API, its parameters and its body."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import yaml
from aiohttp import web

from fakes.kube.api import Write
from fakes.kube.delete_options import NO_KIND, DeleteOptions, of_body
from fakes.kube.kinds import Kind, Kinds
from fakes.kube.protobuf import MAGIC, decode
from fakes.kube.reading import strict_error
from fakes.kube.status import (
    bad_option,
    bad_request,
    failure,
    no_such_path,
    too_long,
    unsupported,
    unsupported_media_type,
)
from harness.kube.port import Json, PatchType

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
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return int(text)


def write_of(request: web.Request, operation: str = "Update") -> Write:
    """The field manager defaults to the start of the User-Agent, as on a real server."""
    options = _OPTIONS[request.method]
    dry_run = dry_run_of(request)
    validation = request.query.get("fieldValidation") or "Warn"
    if validation not in _VALIDATIONS:
        raise bad_option(options, unsupported("fieldValidation", validation, ("", "Ignore", "Strict", "Warn")))
    stated = request.query.get("fieldManager", "")
    if len(stated) > _LONGEST_MANAGER:
        raise bad_option(options, too_long("fieldManager", stated, _LONGEST_MANAGER))
    manager = stated or request.headers.get("User-Agent", "").partition("/")[0]
    return Write(manager[:_LONGEST_MANAGER], dry_run, operation, validation)


def dry_run_of(request: web.Request) -> bool:
    given = request.query.getall("dryRun", [])
    if any(value != "All" for value in given):
        raise bad_option(_OPTIONS[request.method], unsupported("dryRun", list(given), ["All"]))
    return bool(given)


_OPTIONS = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions", "DELETE": "DeleteOptions"}
_VALIDATIONS = ("Ignore", "Warn", "Strict")
_LONGEST_MANAGER = 128


def delete_options(request: web.Request, body: Any) -> DeleteOptions:
    """The body wins; clients that send none put the options into the query."""
    if body is not None:
        found = of_body(body)
        return replace(found, dry_run=found.dry_run or dry_run_of(request))
    raw: Json = {}
    grace_s = integer(request, "gracePeriodSeconds")
    if grace_s is not None:
        raw["gracePeriodSeconds"] = grace_s
    if policy := request.query.get("propagationPolicy"):
        raw["propagationPolicy"] = policy
    if "orphanDependents" in request.query:
        raw["orphanDependents"] = request.query["orphanDependents"].lower() not in ("false", "0")
    found = of_body(raw)
    return replace(found, dry_run=dry_run_of(request))


async def read_body(request: web.Request, write: Write | None = None, kind: Kind | None = None) -> Any:
    """JSON whatever the header says (some clients send none), protobuf as kubectl does, YAML; None when empty.

    With ``write`` a field that is written twice is reported as it asks, for an object of ``kind``."""
    data = await request.read()
    if not data:
        if kind is None or request.method not in ("POST", "PUT"):
            return None
        raise bad_request(_unreadable(request, kind, data, json.JSONDecodeError("", "", 0)))
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
        if request.content_type == PatchType.MERGE:
            raise bad_request("invalid JSON patch") from e
        raise bad_request(_unreadable(request, kind, data, e)) from e
    if kind is not None and request.method in ("POST", "PUT") and not isinstance(found, dict):
        if found is None:
            return {}
        said = "array" if isinstance(found, list) else "string" if isinstance(found, str) else "number"
        said = "bool" if isinstance(found, bool) else said
        error = ValueError(f"json: cannot unmarshal {said} into Go value of type {NO_KIND}")
        raise bad_request(_unreadable(request, kind, data, error))
    if kind is not None and kind.custom and isinstance(found, dict) and not found.get("kind"):
        text = data.decode(errors="replace")
        what = f"must be of type {kind.resource.kind}"
        raise bad_request(
            f"the object provided is unrecognized ({what}): Object 'Kind' is missing in '{text}' ({text})"
        )
    if doubled and write is not None and kind is not None:
        _report(kind, write, [f'duplicate field "{p}"' for p in _doubled_paths(found, doubled, "")])
    return found


_READABLE = frozenset({"application/json", "application/yaml"})
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


def _unreadable(request: web.Request, kind: Kind | None, data: bytes, error: Exception) -> str:
    text = f"couldn't get version/kind; json parse error: {_in_go(error)}"
    if request.method == "DELETE":
        return text
    what = kind.resource.kind if kind else "JSON, YAML or protobuf"
    shown = data.decode(errors="replace") if data.lstrip()[:1] == b"{" else data.hex() or "<empty>"
    return f"the object provided is unrecognized (must be of type {what}): {text} ({shown[:1024]})"


def _in_go(error: Exception) -> str:
    """The words of Go's decoder for what is not JSON, as far as they are known."""
    if not isinstance(error, json.JSONDecodeError):
        return str(error)
    if error.pos >= len(error.doc.rstrip()):
        return "unexpected end of JSON input"
    return f"invalid character {error.doc[error.pos]!r} looking for beginning of value"


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
        raise failure(415, "UnsupportedMediaType", "415: Unsupported Media Type", {}) from None
