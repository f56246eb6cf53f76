"""Devices that pods get by claim (dynamic resource allocation, resource.k8s.io/v1): who had which, and its taints.

A device is tainted in its ResourceSlice, by its driver, or by a DeviceTaintRule, by a person. Effects and tolerations
as of kubernetes v1.37 pkg/controller/devicetainteviction: NoExecute takes off the pods that hold the device.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.history.lives import Json, Life, lives
from harness.history.tables import ObjectEvent

if TYPE_CHECKING:
    from harness.history.reader import History

SLICE, CLAIM, RULE = "ResourceSlice", "ResourceClaim", "DeviceTaintRule"
NO_EXECUTE = "NoExecute"
_SELECTED = ("driver", "pool", "device")

Device = tuple[str, str, str]
"""Driver, pool, name."""


@dataclass(frozen=True, slots=True)
class Tainted:
    """A time in which a device had a taint that takes pods off. ``end_ns``: when it was taken away, if it was."""

    device: Device
    taint: Json
    event: ObjectEvent
    end_ns: int | None

    @property
    def start_ns(self) -> int:
        return self.event.t_ns


@dataclass(frozen=True, slots=True)
class Held:
    """One device in one claim, and the pods that the claim was reserved for. Until ``end_ns``, if it was given back."""

    device: Device
    claim: Life
    pods: frozenset[str]
    """Their uids."""
    result: Json
    """What the scheduler wrote of it."""
    event: ObjectEvent
    end_ns: int | None

    @property
    def alone(self) -> bool:
        """Whether nobody else may have the device meanwhile."""
        return not (self.result.get("adminAccess") or self.result.get("shareID"))

    def tolerates(self, taint: Json) -> bool:
        return any(_tolerates(toleration, taint) for toleration in self.result.get("tolerations") or ())


def _tolerates(toleration: Json, taint: Json) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint.get("key"))
    return toleration.get("key") == taint.get("key") and (toleration.get("value") or "") == (taint.get("value") or "")


def tainted(history: History) -> tuple[Tainted, ...]:
    """Every time a device had a taint of effect NoExecute, by its beginning."""
    found = [*_by_slices(history), *_by_rules(history)]
    return tuple(sorted(found, key=lambda t: t.event.index))


def _by_slices(history: History) -> Iterator[Tainted]:
    for life in lives(history.objects, SLICE):
        since: dict[tuple[Device, str], tuple[Json, ObjectEvent]] = {}
        for event in life.seen:
            now = {(device, str(t.get("key"))): t for device, t in _taints(event.object)}
            for key in [key for key in since if key not in now]:
                taint, began = since.pop(key)
                yield Tainted(key[0], taint, began, event.t_ns)
            for key, taint in now.items():
                since.setdefault(key, (taint, event))
        for (device, _), (taint, began) in since.items():
            yield Tainted(device, taint, began, life.gone.t_ns if life.gone else None)


def _taints(piece: Json) -> Iterator[tuple[Device, Json]]:
    spec = piece.get("spec", {})
    pool = str((spec.get("pool") or {}).get("name", ""))
    for device in spec.get("devices") or ():
        for taint in device.get("taints") or ():
            if taint.get("effect") == NO_EXECUTE:
                yield (str(spec.get("driver", "")), pool, str(device.get("name", ""))), taint


def _by_rules(history: History) -> Iterator[Tainted]:
    """A rule that leaves out driver, pool or device means any."""
    devices = sorted({device for life in lives(history.objects, SLICE) for device in devices_of(life.last)})
    for life in lives(history.objects, RULE):
        spec = life.last.get("spec", {})
        taint, selector = spec.get("taint") or {}, spec.get("deviceSelector") or {}
        if taint.get("effect") != NO_EXECUTE:
            continue
        wanted = [selector.get(part) for part in _SELECTED]
        for device in devices:
            if all(part in (None, has) for part, has in zip(wanted, device, strict=True)):
                yield Tainted(device, taint, life.seen[0], life.gone.t_ns if life.gone else None)


def devices_of(piece: Json | None) -> Iterator[Device]:
    """All that a ResourceSlice lists."""
    spec = (piece or {}).get("spec", {})
    for device in spec.get("devices") or ():
        yield str(spec.get("driver", "")), str((spec.get("pool") or {}).get("name", "")), str(device.get("name", ""))


def held(history: History) -> tuple[Held, ...]:
    """Every device in every claim, by when it was given."""
    found = [each for life in lives(history.objects, CLAIM) for each in _held(life)]
    return tuple(sorted(found, key=lambda h: h.event.index))


def _held(claim: Life) -> Iterator[Held]:
    """A claim is given its devices once and gives them back as one; pods come and go meanwhile."""
    given: ObjectEvent | None = None
    results: list[Json] = []
    pods: set[str] = set()
    for event in claim.seen:
        status = event.object.get("status") or {}
        allocation = status.get("allocation")
        if given is None and allocation:
            given, results, pods = event, list((allocation.get("devices") or {}).get("results") or ()), set()
        if given is not None and not allocation:
            yield from _of(claim, results, pods, given, event.t_ns)
            given = None
        elif given is not None:
            pods |= {str(ref.get("uid")) for ref in status.get("reservedFor") or () if ref.get("resource") == "pods"}
    if given is not None:
        yield from _of(claim, results, pods, given, claim.gone.t_ns if claim.gone else None)


def _of(claim: Life, results: list[Json], pods: set[str], given: ObjectEvent, end_ns: int | None) -> Iterator[Held]:
    for result in results:
        device = (str(result.get("driver", "")), str(result.get("pool", "")), str(result.get("device", "")))
        yield Held(device, claim, frozenset(pods), result, given, end_ns)
