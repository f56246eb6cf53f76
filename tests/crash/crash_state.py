"""What a cluster looks like, and in what two looks at it differ: first of all in fields that the harness wrote."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from harness.faults.objects import label_of
from harness.kube.http import HttpKube
from harness.kube.port import EVENT, RESOURCES, Json, Kube, NotFound
from harness.targets.base import Connection

MANAGER = "gpu-harness"
Key = tuple[str, str, str]
_MISSING = object()
_BOOKS = ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "deletionTimestamp")
"""Of metadata: what the API server keeps for itself, or what says that an object is going."""


@dataclass(frozen=True)
class State:
    """``knobs`` are those that do not stand at their default; ``instances`` have a state by id."""

    objects: Mapping[Key, Json]
    knobs: Mapping[str, Any]
    instances: Mapping[str, str]


@dataclass
class Differences:
    """``written``: fields that the harness wrote and that are not as they were, and objects that it made and that are
    still there. ``gone``: objects with fields of the harness that are not there any more, and nodes. ``other``: what
    else differs outside of any status."""

    written: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    other: list[str] = field(default_factory=list)


async def look(connection: Connection) -> State:
    async with HttpKube(connection.kubeconfig, field_manager="crash-test") as kube:
        objects = await look_at(kube)
    async with httpx.AsyncClient(base_url=connection.control_url or "", trust_env=False) as http:
        knobs = (await http.get("/v1/knobs")).json()["items"]
        instances = (await http.get("/v1/instances")).json()["items"]
    turned = {f"{k['knob']}/{k['target']}": k["value"] for k in knobs}
    return State(objects, turned, {i["id"]: i["state"] for i in instances})


async def look_at(kube: Kube) -> dict[Key, Json]:
    objects: dict[Key, Json] = {}
    for resource in RESOURCES:
        if resource is EVENT:
            continue
        with contextlib.suppress(NotFound):  # not served here
            for obj in (await kube.list(resource)).items:
                meta = obj["metadata"]
                objects[resource.kind, meta.get("namespace", ""), meta["name"]] = obj
    return objects


def differences(before: State, after: State) -> Differences:
    found = Differences()
    for key in sorted(before.objects.keys() | after.objects.keys()):
        old, new = before.objects.get(key), after.objects.get(key)
        name = "/".join(part for part in key if part)
        if new is not None and label_of(new) is not None:
            found.written.append(f"{name}: made by a run, and still there")
        elif new is None or old is None:
            _came_or_went(name, old, new, found)
        else:
            _changed(name, old, new, found)
    for knob in sorted(before.knobs.keys() | after.knobs.keys()):
        if (was := before.knobs.get(knob)) != (is_now := after.knobs.get(knob)):
            found.written.append(f"knob {knob}: was {was}, is {is_now}")
    found.written += [f"instance {i}: still under notice" for i, s in after.instances.items() if s == "interrupting"]
    return found


def _came_or_went(name: str, old: Json | None, new: Json | None, found: Differences) -> None:
    if old is None:
        assert new is not None
        if created_by_us(new):
            found.written.append(f"{name}: made by the harness, and still there")
    elif set(_owned(old)) or name.startswith("Node/"):
        found.gone.append(name)


def _changed(name: str, old: Json, new: Json, found: Differences) -> None:
    others = set(_owned(new, ours=False))
    ours = [path for path in dict.fromkeys((*_owned(old), *_owned(new))) if path not in others]
    for path in ours:
        was, now = _value(old, path), _value(new, path)
        if was != now:
            found.written.append(f"{name}: {_text(path)} was {_shown(was)}, is {_shown(now)}")
    if old["metadata"]["uid"] != new["metadata"]["uid"]:
        found.gone.append(name)
        return
    for part in old.keys() | new.keys():
        if part in ("status", "metadata", "renewTime") or name.startswith(("Lease/", "EndpointSlice/")):
            continue
        if old.get(part) != new.get(part) and not any(path[0] == part for path in ours):
            found.other.append(f"{name}: {part}")
    meta = old["metadata"].keys() | new["metadata"].keys()
    for part in sorted(meta - set(_BOOKS)):
        if old["metadata"].get(part) != new["metadata"].get(part):
            found.other.append(f"{name}: metadata.{part}")


def created_by_us(obj: Json) -> bool:
    return any(entry.get("manager") == MANAGER for entry in obj["metadata"].get("managedFields") or ())


Path = tuple[str, ...]


def _owned(obj: Json, *, ours: bool = True) -> Iterator[Path]:
    """Paths of the fields that the harness, or anybody else, wrote last, as fieldsV1 names them."""
    for entry in obj["metadata"].get("managedFields") or ():
        if (entry.get("manager") == MANAGER) is ours:
            yield from _leaves(entry.get("fieldsV1") or {}, ())


def _leaves(fields: Json, above: Path) -> Iterator[Path]:
    children = {key: value for key, value in fields.items() if key != "."}
    if not children and above:
        yield above
    for key, value in children.items():
        if isinstance(value, dict):
            yield from _leaves(value, (*above, key.removeprefix("f:") if key.startswith("f:") else key))


def _value(obj: Any, path: Path) -> Any:
    now: Any = obj
    for step in path:
        if step.startswith(("k:", "v:")) and isinstance(now, list):
            wanted = json.loads(step[2:])
            now = next((item for item in now if _is(item, wanted, step)), _MISSING)
        elif isinstance(now, dict):
            now = now.get(step, _MISSING)
        else:
            return _MISSING
    return now


def _is(item: Any, wanted: Any, step: str) -> bool:
    if step.startswith("v:"):
        return bool(item == wanted)
    return isinstance(item, dict) and all(item.get(k) == v for k, v in wanted.items())


def _text(path: Path) -> str:
    return ".".join(path)


def _shown(value: Any) -> str:
    return "not there" if value is _MISSING else json.dumps(value)[:120]
