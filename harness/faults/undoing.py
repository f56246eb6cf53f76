"""How each kind of change is undone, whichever fault made it. All are safe twice, and after half an injection."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence

from harness.errors import GuardRefused, InternalError, TargetError
from harness.faults.load_process import load_of
from harness.faults.objects import delete_ours, label_of, read, resource_of
from harness.faults.port import Ground
from harness.faults.programs import HALTED
from harness.faults.undo import (
    CancelInterruption,
    DeleteObjects,
    NothingLeft,
    ObjectRef,
    ResetKnob,
    RestoreFields,
    ResumeLoad,
    ResumeProcess,
    Undo,
)
from harness.faults.world_control import TargetGone, WorldControl
from harness.kube.port import Conflict, Json, NotFound


def world_of(ground: Ground) -> WorldControl:
    if ground.world is None:
        raise GuardRefused(
            f"target {ground.target} has no emulated part whose switches could be turned",
            hint="run this fault where nodes and cloud are emulated: embedded",
        )
    return ground.world


async def _cancel_interruption(ground: Ground, undo: Undo) -> str:
    assert isinstance(undo, CancelInterruption)
    return await world_of(ground).cancel_interruption(undo.instance_id)


async def _delete_objects(ground: Ground, undo: Undo) -> str:
    """Last created, first deleted. It is undone only when they are gone: TargetError says what holds those that are
    still terminating, and whoever heals next looks again."""
    assert isinstance(undo, DeleteObjects)
    there = [ref for ref in reversed(undo.objects) if await delete_ours(ground.kube, ref, undo.run_label)]
    left = await _still_there(ground, undo.objects, undo.run_label)
    if left:
        raise TargetError(f"{len(left)} of {len(undo.objects)} objects are still there: {'; '.join(left)}")
    return f"{len(there)} of {len(undo.objects)} objects deleted and gone, the others were not there"


async def _still_there(ground: Ground, refs: Sequence[ObjectRef], label: str) -> list[str]:
    """Ours that do not go within the slack, and why."""
    deadline = asyncio.get_running_loop().time() + ground.patience.slack_s
    while True:
        found = [(ref, await read(ground.kube, ref)) for ref in refs]
        left = [f"{ref} {_why_there(obj)}" for ref, obj in found if obj is not None and label_of(obj) == label]
        if not left or asyncio.get_running_loop().time() >= deadline:
            return left
        await asyncio.sleep(ground.patience.poll_s)


def _why_there(obj: Json) -> str:
    meta = obj["metadata"]
    if finalizers := meta.get("finalizers"):
        return f"waits for its finalizers {', '.join(map(str, finalizers))}"
    if (going := meta.get("deletionTimestamp")) is not None:
        grace = meta.get("deletionGracePeriodSeconds") or 0
        return f"ends within its grace of {grace} s, by {going}"
    return "was not deleted"


async def _resume(ground: Ground, undo: Undo) -> str:
    return load_of(ground).resume(undo)


async def _reset_knob(ground: Ground, undo: Undo) -> str:
    assert isinstance(undo, ResetKnob)
    try:
        await world_of(ground).turn(undo.knob, undo.target, undo.earlier)
    except TargetGone:
        return f"{undo.target} is not there any more; {undo.knob} went with it"
    return f"{undo.knob} of {undo.target} stands where it stood: {_shown(undo.earlier)}"


async def _restore_fields(ground: Ground, undo: Undo) -> str:
    """Leaves alone what somebody else has written since; says so."""
    assert isinstance(undo, RestoreFields)
    obj = await read(ground.kube, undo.object)
    if obj is None:
        return f"{undo.object} is not there any more"
    mine, others = _split(undo.earlier, undo.ours, obj)
    if ground.only_of:
        owned = _owned(obj, ground.only_of)
        if never := _unwritten(owned, obj, mine, undo.ours, wrote_some=bool(owned)):
            raise GuardRefused(f"{undo.object}: refused, for {ground.only_of} never wrote it: {', '.join(never)}")
    if mine:
        resource = resource_of(undo.object)
        try:
            await ground.kube.patch(resource, undo.object.name, mine, undo.object.namespace or None)
        except NotFound:
            return f"{undo.object} is not there any more"
        except Conflict as error:
            raise TargetError(f"{undo.object} could not be restored: {error}") from error
    restored = len(_leaves(mine))
    said = f"{undo.object}: {restored} {'field has its' if restored == 1 else 'fields have their'} earlier value"
    return said + (f"; left alone, for others wrote them since: {', '.join(others)}" if others else "")


async def _nothing_left(ground: Ground, undo: Undo) -> str:
    assert isinstance(undo, NothingLeft)
    return undo.reason


UNDOING: dict[str, Callable[[Ground, Undo], Awaitable[str]]] = {
    CancelInterruption.kind: _cancel_interruption,
    DeleteObjects.kind: _delete_objects,
    ResumeProcess.kind: _resume,
    ResumeLoad.kind: _resume,
    ResetKnob.kind: _reset_knob,
    RestoreFields.kind: _restore_fields,
    NothingLeft.kind: _nothing_left,
}


async def undo_change(ground: Ground, undo: Undo) -> str:
    """Says what it found."""
    undoing = UNDOING.get(undo.kind)
    if undoing is None:
        raise InternalError(f"nobody knows how to undo {undo.kind}")
    return await undoing(ground, undo)


def by_hand(undo: Undo | None, control_url: str = "$CONTROL_URL") -> str:
    """The command with which a person undoes it, for the day on which we cannot."""
    match undo:
        case CancelInterruption():
            return f"curl -X DELETE {control_url}/v1/instances/{undo.instance_id}/interruption"
        case DeleteObjects():
            names = "; ".join(
                f"kubectl delete {ref.kind.lower()} {ref.name}" + (f" -n {ref.namespace}" if ref.namespace else "")
                for ref in reversed(undo.objects)
            )
            return f"{names} (only what carries the label gpu-harness.dev/run={undo.run_label})"
        case ResumeProcess():
            return f"kill -CONT {undo.pid}"
        case ResetKnob(knob=knob, target=program) if knob == HALTED:
            return f"curl -X POST $STACK_URL/programs/{program}/start (or `gpu-harness down`, if nothing else needs it)"
        case ResetKnob():
            body = json.dumps({"value": undo.earlier})
            return f"curl -X PUT -d '{body}' {control_url}/v1/knobs/{undo.knob}/{undo.target}"
        case RestoreFields():
            ref = undo.object
            where = f" -n {ref.namespace}" if ref.namespace else ""
            return f"kubectl patch {ref.kind.lower()} {ref.name}{where} --type merge -p '{json.dumps(undo.earlier)}'"
        case _:
            return "nothing can be done by hand"


def _split(earlier: Mapping[str, Json], ours: Mapping[str, Json], obj: Json) -> tuple[Json, list[str]]:
    """What puts the fields of ``ours`` back that still have our value, and the paths of those that do not. A field of
    ours that ``earlier`` does not name was not there, and goes."""
    mine: Json = {}
    others: list[str] = []
    for key, wrote in ours.items():
        value, now = earlier.get(key), (obj or {}).get(key)
        if isinstance(wrote, Mapping) and isinstance(now, dict) and not (value is None and now == wrote):
            inner, foreign = _split(value if isinstance(value, Mapping) else {}, wrote, now)
            others += [f"{key}.{path}" for path in foreign]
            if inner:
                mine[key] = inner
        elif now in (wrote, value):
            mine[key] = value
        else:
            others.append(key)
    return mine, others


def _owned(obj: Json, manager: str) -> list[Json]:
    """What the field manager owns of an object, as trees of ``f:NAME``."""
    entries = obj["metadata"].get("managedFields") or ()
    return [entry.get("fieldsV1") or {} for entry in entries if entry.get("manager") == manager]


def _unwritten(
    owned: Sequence[Json], now: Json, mine: Mapping[str, Json], ours: Mapping[str, Json], *, wrote_some: bool
) -> list[str]:
    """Paths that restoring would change, and that are not among what is owned. Of a field that was taken away nobody
    owns anything: there it must do that the manager ``wrote_some`` of the object."""
    found: list[str] = []
    for key, value in mine.items():
        current, wrote = now.get(key), ours.get(key)
        below = [tree[f"f:{key}"] for tree in owned if f"f:{key}" in tree]
        if current == value:
            continue
        if isinstance(value, Mapping) and isinstance(current, dict) and isinstance(wrote, Mapping):
            inner = _unwritten(below, current, value, wrote, wrote_some=wrote_some)
            found += [f"{key}.{path}" for path in inner]
        elif not below and not (wrote is None and wrote_some):
            found.append(key)
    return found


def _leaves(patch: Mapping[str, Json]) -> list[str]:
    found: list[str] = []
    for key, value in patch.items():
        found += [f"{key}.{p}" for p in _leaves(value)] if isinstance(value, Mapping) and value else [key]
    return found


def _shown(value: object) -> str:
    return "its default" if value is None else json.dumps(value)
