"""Objects arrive in the cluster by plan: a gang, a job, a quota. They carry the run's label and go with it."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import ClassVar

from harness.errors import InternalError, TargetError
from harness.faults.pick import FleetNode
from harness.faults.port import TARGETS, Fidelity, Ground, NotObserved
from harness.faults.undo import DeleteObjects, ObjectRef, Undo
from harness.faults.wait import TookTooLong, until
from harness.kube.port import RESOURCES, AlreadyExists, Conflict, Json, Kube, NotFound, Resource

RUN_LABEL = "gpu-harness.dev/run"
APPEAR_S = 30.0


def run_label(run_dir: Path) -> str:
    """A label value that names the run: readable, and unique by the folder's full path."""
    path = str(run_dir.resolve())
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", run_dir.resolve().name)[:40].strip("-._")
    return f"{stem or 'run'}-{hashlib.sha256(path.encode()).hexdigest()[:8]}"


@dataclass(frozen=True, slots=True)
class ApplyObjects:
    """Blast radius: the objects of one manifest, created, never changed where they exist already."""

    name: ClassVar[str] = "apply_objects"
    colour: ClassVar[str] = "#7f7f7f"
    disruptive: ClassVar[bool] = False
    fidelity: ClassVar[Mapping[str, Fidelity]] = dict.fromkeys(TARGETS, Fidelity.NATIVE)

    objects: tuple[tuple[Resource, Json], ...]

    def pick(self, fleet: Sequence[FleetNode], rng: Random) -> tuple[str, ...]:
        return tuple(str(ref) for ref in self._refs())

    def longest_s(self) -> float:
        return APPEAR_S

    async def inject(self, ground: Ground, fault_id: str, targets: Sequence[str]) -> None:
        label = ground.label or run_label(ground.run_dir)
        ground.undo.before(fault_id, DeleteObjects(label, self._refs()))
        for resource, obj in self.objects:
            labelled = deepcopy(obj)
            labelled["metadata"].setdefault("labels", {})[RUN_LABEL] = label
            try:
                await ground.kube.create(resource, labelled, _namespace(resource, obj) or None)
            except AlreadyExists as error:
                raise TargetError(
                    f"{_ref(resource, obj)} exists already, and {fault_id} creates only what is new",
                    hint="delete it, or give the manifest's object another name",
                ) from error

    async def observe(self, ground: Ground, targets: Sequence[str]) -> str:
        label = ground.label or run_label(ground.run_dir)

        async def look() -> str | None:
            found = [obj for ref in self._refs() if (obj := await _get(ground.kube, ref)) and _label(obj) == label]
            return f"the API serves all {len(found)} objects" if len(found) == len(self.objects) else None

        try:
            return await until(look, ground.within_s(APPEAR_S), ground.patience.poll_s)
        except TookTooLong as error:
            raise NotObserved(f"created, but not all of {', '.join(targets)} are served {error}") from error

    async def outlast(self, ground: Ground, fault_id: str, targets: Sequence[str]) -> None:
        return None

    @staticmethod
    async def heal(ground: Ground, undo: Undo) -> str:
        """Last created, first deleted. Names the objects that are still terminating: pods have a grace of their own."""
        if not isinstance(undo, DeleteObjects):
            raise InternalError(f"apply_objects cannot undo {undo.kind}")
        deleted = [ref for ref in reversed(undo.objects) if await _delete(ground.kube, ref, undo.run_label)]
        left = await _still_there(ground, deleted, undo.run_label)
        lingering = f", still terminating: {', '.join(map(str, left))}" if left else ""
        return f"{len(deleted)} of {len(undo.objects)} objects deleted, the others were not there{lingering}"

    def _refs(self) -> tuple[ObjectRef, ...]:
        return tuple(_ref(resource, obj) for resource, obj in self.objects)


async def _delete(kube: Kube, ref: ObjectRef, label: str) -> bool:
    """Deletes by uid and only what carries our label: the name may have passed on to somebody else's object."""
    obj = await _get(kube, ref)
    if obj is None or _label(obj) != label:
        return False
    try:
        await kube.delete(_resource(ref), ref.name, ref.namespace or None, uid=obj["metadata"]["uid"])
    except (NotFound, Conflict):
        return False
    return True


async def _still_there(ground: Ground, refs: Sequence[ObjectRef], label: str) -> list[ObjectRef]:
    deadline = asyncio.get_running_loop().time() + ground.patience.slack_s
    left = list(refs)
    while left:
        left = [ref for ref in left if (obj := await _get(ground.kube, ref)) is not None and _label(obj) == label]
        if not left or asyncio.get_running_loop().time() >= deadline:
            break
        await asyncio.sleep(ground.patience.poll_s)
    return left


async def _get(kube: Kube, ref: ObjectRef) -> Json | None:
    try:
        return await kube.get(_resource(ref), ref.name, ref.namespace or None)
    except NotFound:
        return None


def _label(obj: Json) -> str | None:
    value = (obj["metadata"].get("labels") or {}).get(RUN_LABEL)
    return None if value is None else str(value)


def _ref(resource: Resource, obj: Json) -> ObjectRef:
    return ObjectRef(resource.api_version, resource.kind, str(obj["metadata"]["name"]), _namespace(resource, obj))


def _namespace(resource: Resource, obj: Json) -> str:
    return str(obj["metadata"].get("namespace") or "default") if resource.namespaced else ""


def _resource(ref: ObjectRef) -> Resource:
    for resource in RESOURCES:
        if (resource.api_version, resource.kind) == (ref.api_version, ref.kind):
            return resource
    raise InternalError(f"{ref} is of {ref.api_version}, which this version does not know")
