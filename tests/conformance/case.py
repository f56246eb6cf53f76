"""What a case is: requests in order, and which differences between the two servers are explained.

In paths, bodies and headers ``{ns}`` is the case's own namespace; ``{x.uid}``, ``{x.version}`` and ``{x.name}`` are of
the object that an earlier call saved as ``x``, and ``{x.next}`` is the continue token of a list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

JSON = "application/json"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


@dataclass(frozen=True, slots=True)
class Call:
    """One request. Its status, headers that clients read, and body are compared unless it is ``setup``."""

    method: str
    path: str
    body: Any = None
    """JSON, or ``str``/``bytes`` to be sent as they are."""
    type: str = JSON
    accept: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    save: str = ""
    setup: bool = False
    drop: tuple[str, ...] = ()
    """Parts of the body (dotted, ``*`` for any one step) that say nothing about the server."""
    watch: bool = False
    """The answer is a stream of events that ends by itself (timeoutSeconds)."""
    pick: Callable[[Any], Any] | None = None
    """Of the body, what is compared: for answers that list what only one side serves."""
    until: bool = False
    """Repeated until it succeeds: for what a controller of the real side does a moment later."""


@dataclass(frozen=True, slots=True)
class Watch:
    """Opens a watch that stays open while the next calls are made."""

    path: str
    accept: str = JSON


@dataclass(frozen=True, slots=True)
class Events:
    """The next events of the watch opened last: exactly ``count``, and compared."""

    count: int
    drop: tuple[str, ...] = ()


Step = Call | Watch | Events


@dataclass(frozen=True, slots=True)
class Explained:
    """A difference that is meant to be: where (as in the report of differences, ``*`` for anything), and why."""

    where: str
    why: str


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    steps: tuple[Step, ...]
    explained: tuple[Explained, ...] = ()
    error: bool = False
    """An error or a race, as against a plain success."""
    pods: bool = False
    """Needs what the namespace is furnished with, its default ServiceAccount as every pod does."""


def case(
    name: str, *steps: Step, explained: tuple[Explained, ...] = (), error: bool = False, pods: bool = False
) -> Case:
    return Case(name, steps, explained, error, pods)


def get(path: str, **rest: Any) -> Call:
    return Call("GET", path, **rest)


def post(path: str, body: Any, **rest: Any) -> Call:
    return Call("POST", path, body, **rest)


def put(path: str, body: Any, **rest: Any) -> Call:
    return Call("PUT", path, body, **rest)


def patch(path: str, body: Any, type: str = MERGE, **rest: Any) -> Call:
    return Call("PATCH", path, body, type, **rest)


def apply(path: str, body: Any, manager: str = "alice", force: bool = False, **rest: Any) -> Call:
    mark = "&" if "?" in path else "?"
    query = f"{mark}fieldManager={manager}" + ("&force=true" if force else "")
    return Call("PATCH", path + query, body, APPLY, **rest)


def delete(path: str, body: Any = None, **rest: Any) -> Call:
    return Call("DELETE", path, body, **rest)


def setup(method: str, path: str, body: Any = None, save: str = "", type: str = JSON) -> Call:
    return Call(method, path, body, type, save=save, setup=True)


def taken_for_ours(*steps: int) -> tuple[Explained, ...]:
    """What a client did wrong and the real server answers with 500."""
    why = (
        "the real server takes this for its own failure (500 without a reason), the embedded one for the client's; "
        "the message is the same"
    )
    return tuple(
        Explained(f"[{i}].{part}", why) for i in steps or (0,) for part in ("status", "body.code", "body.reason")
    )
