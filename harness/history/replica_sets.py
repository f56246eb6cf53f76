"""What ReplicaSets decided: each raise of ``spec.replicas`` and each pod that went, and the pod that took the place."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from harness.history.lives import (
    Life,
    condition,
    going,
    lives,
    owner_of,
    template_labels,
    terminal,
    workload_pods,
)
from harness.history.tables import ObjectEvent, ObjectEventType
from harness.selectors import parse_selector

if TYPE_CHECKING:
    from harness.history.reader import History

SETTLE_NS = 250_000_000
"""Watches of different kinds are not ordered among each other; causes may be received this much after effects."""
_TAIL_NS = 1_000_000_000
"""What was decided this shortly before the recording's end, or before it was taken back, had no time to happen."""


class Origin(enum.StrEnum):
    ADDED = "added"
    REPLACEMENT = "replacement"


@dataclass(frozen=True, slots=True)
class Slot:
    """Why a pod was to be created: a raise of ``spec.replicas``, or a predecessor that began to go."""

    t_ns: int
    origin: Origin
    event: ObjectEvent | None
    predecessor: str = ""
    withdrawn_ns: int | None = None
    """When the size was lowered again, or its set deleted, before any pod had been made for it."""


def assign(history: History) -> list[tuple[Slot, Life | None]]:
    """Every raise and vacancy since the load began with the pod that filled it, if any did."""
    start_ns = history.run.load_start_ns
    sets = {life.uid: life for life in lives(history.objects, "ReplicaSet")}
    pods = workload_pods(history)
    owned: dict[str, list[Life]] = {}
    for pod in pods:
        owned.setdefault(owner_of(pod.last), []).append(pod)
    filled: list[tuple[Slot, Life | None]] = []
    for owner, own in owned.items():
        filled += _assign_set(sets.get(owner), own)
    for life in _without_pods(history, sets, owned):
        filled += _assign_set(life, ())
    last_ns = history.recorded_until_ns - _TAIL_NS
    came = [
        (slot, pod) for slot, pod in filled if (pod.born_ns >= start_ns if pod else start_ns <= slot.t_ns < last_ns)
    ]
    return sorted(came, key=lambda pair: (pair[0].t_ns, pair[1].born_ns if pair[1] else 0))


def _without_pods(history: History, sets: Mapping[str, Life], owned: Collection[str]) -> list[Life]:
    """ReplicaSets of the workload, known by their pod template, where no pod was ever made: neither for them nor for
    another set of their Deployment, so that no rollout is taken for them."""
    workload = history.run.workload
    selector = parse_selector(workload.get("selector", ""))
    known = {owner_of(sets[uid].last) for uid in owned if uid in sets} - {""}
    return [
        life
        for uid, life in sets.items()
        if uid not in owned
        and owner_of(life.last) not in known
        and life.namespace == workload.get("namespace", "")
        and (labels := template_labels(life.last)) is not None
        and selector.matches(labels)
    ]


def _assign_set(owner: Life | None, pods: Sequence[Life]) -> list[tuple[Slot, Life | None]]:
    steps: list[tuple[int, int, str, Any]] = []
    for before, after, event in replica_steps(owner) if owner else ():
        steps.append((event.t_ns, len(steps), "scaled", (before, after, event)))
    for pod in pods:
        if left := leaving(pod):
            steps.append((left.t_ns + SETTLE_NS, len(steps), "left", (pod, left)))
        steps.append((pod.born_ns + 2 * SETTLE_NS, len(steps), "came", pod))
    open_slots: list[Slot] = []
    to_remove = 0
    filled: list[tuple[Slot, Life | None]] = []
    for _, _, what, item in sorted(steps, key=lambda step: step[:2]):
        if what == "scaled":
            before, after, event = item
            open_slots += [Slot(event.t_ns, Origin.ADDED, event)] * (after - before)
            to_remove += max(0, before - after)
            while to_remove and open_slots:
                taken = open_slots.pop()
                to_remove -= 1
                if event.t_ns - taken.t_ns >= _TAIL_NS:
                    filled.append((replace(taken, withdrawn_ns=event.t_ns), None))
        elif what == "left":
            pod, left = item
            if to_remove and not condition(left.object, "DisruptionTarget"):
                to_remove -= 1
            else:
                open_slots.append(Slot(left.t_ns, Origin.REPLACEMENT, left, pod.name))
        else:
            slot = open_slots.pop(0) if open_slots else Slot(item.born_ns, Origin.ADDED, item.seen[0])
            filled.append((slot, item))
    gone_ns = owner.gone.t_ns if owner is not None and owner.gone is not None else None
    for slot in open_slots:
        added = slot.origin is Origin.ADDED
        filled.append((replace(slot, withdrawn_ns=gone_ns) if added else slot, None))
    return filled


def replica_steps(life: Life) -> Iterable[tuple[int, int, ObjectEvent]]:
    """Changes of ``spec.replicas``. An object seen being created counts from 0, a listed one from what it had."""
    before: int | None = 0 if life.seen[0].type is ObjectEventType.ADDED else None
    for event in life.seen:
        after = int(event.object.get("spec", {}).get("replicas", 1))
        if before is not None and after != before:
            yield before, after, event
        before = after


def leaving(pod: Life) -> ObjectEvent | None:
    """When a pod stopped counting for its ReplicaSet: asked to go, ended, or vanished."""
    return pod.when(lambda obj: going(obj) or terminal(obj)) or pod.gone
