"""Which nodes are missing. Pure: pending pods, the room there is or will be, the pools that could give more.

First fit, largest first, existing room before new nodes, whole gangs or nothing of them. Asked again with the nodes of
its last answer among the rooms, it asks for nothing more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fakes.controllers.gang import group_name, min_count
from fakes.controllers.objects import name_of, namespace_of
from fakes.controllers.placement import NodeRoom, refuse
from fakes.controllers.resources import requested
from fakes.nodes.labels import GPU_RESOURCE
from harness.kube.port import Json

GroupKey = tuple[str, str]
"""Namespace and name of a PodGroup."""


@dataclass(frozen=True, slots=True)
class Template:
    """A node that a pool could give: as it would be, how many more, and which pool comes first."""

    pool: str
    node: Json
    left: int
    weight: int = 0
    price: float = 0.0


@dataclass(frozen=True, slots=True)
class NewNode:
    pool: str
    pods: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    new: tuple[NewNode, ...] = ()
    placed: tuple[tuple[Json, str], ...] = ()
    """Pods that fit on a node which exists or is under way, with its name."""
    unplaced: tuple[Json, ...] = ()
    """Pods for which no pool has a node; those of gangs with too few members are not among them."""


@dataclass(slots=True)
class _Open:
    """A new node of this plan."""

    template: Template
    room: NodeRoom
    pods: list[Json] = field(default_factory=list)


@dataclass(slots=True)
class _Trial:
    """Where pods were put so far; everything can be taken back."""

    rooms: Sequence[NodeRoom]
    templates: Sequence[Template]
    opened: list[_Open] = field(default_factory=list)
    placed: list[tuple[Json, NodeRoom]] = field(default_factory=list)

    def put(self, pod: Json) -> bool:
        for room in (*self.rooms, *(o.room for o in self.opened)):
            if refuse(pod, room) is None:
                self._hold(pod, room)
                return True
        for template in self.templates:
            opened = sum(o.template.pool == template.pool for o in self.opened)
            room = NodeRoom.of(template.node)
            if opened < template.left and refuse(pod, room) is None:
                self.opened.append(_Open(template, room))
                self._hold(pod, room)
                return True
        return False

    def take_back_to(self, placed: int, opened: int) -> None:
        for pod, room in self.placed[placed:]:
            room.hold(pod, -1)
        del self.placed[placed:]
        del self.opened[opened:]

    def _hold(self, pod: Json, room: NodeRoom) -> None:
        room.hold(pod)
        self.placed.append((pod, room))


def make_plan(
    pending: Iterable[Json],
    rooms: Sequence[NodeRoom],
    templates: Iterable[Template],
    groups: Mapping[GroupKey, Json],
    bound: Mapping[GroupKey, int],
) -> Plan:
    """``bound``: members of each gang that have a node and keep it."""
    trial = _Trial(rooms, sorted(templates, key=lambda t: (-t.weight, t.price, t.pool)))
    unplaced: list[Json] = []
    for key, pods in _units(pending):
        if key is None:
            unplaced += [pod for pod in pods if not trial.put(pod)]
            continue
        group = groups.get(key)
        if group is None or len(pods) + bound.get(key, 0) < min_count(group):
            continue  # the scheduler will not look at it before more members are there
        unplaced += _put_gang(trial, pods, max(0, min_count(group) - bound.get(key, 0)))
    new_rooms = {id(o.room): o for o in trial.opened}
    placed: list[tuple[Json, str]] = []
    for pod, room in trial.placed:
        if opened := new_rooms.get(id(room)):
            opened.pods.append(pod)
        else:
            placed.append((pod, room.name))
    new = tuple(NewNode(o.template.pool, tuple(o.pods)) for o in trial.opened)
    return Plan(new, tuple(placed), tuple(unplaced))


def _put_gang(trial: _Trial, pods: Sequence[Json], needed: int) -> list[Json]:
    """The pods that found no place. ``needed`` of them go together; what is beyond stands for itself."""
    placed, opened = len(trial.placed), len(trial.opened)
    left = [pod for pod in pods if not trial.put(pod)]
    if len(pods) - len(left) < needed:
        trial.take_back_to(placed, opened)
        return list(pods)
    return left


def _units(pending: Iterable[Json]) -> list[tuple[GroupKey | None, list[Json]]]:
    """Gangs as a whole, single pods one by one; the heaviest first, then the oldest."""
    gangs: dict[GroupKey, list[Json]] = defaultdict(list)
    units: list[tuple[GroupKey | None, list[Json]]] = []
    for pod in pending:
        if name := group_name(pod):
            gangs[(namespace_of(pod), name)].append(pod)
        else:
            units.append((None, [pod]))
    units += [(key, sorted(pods, key=_order)) for key, pods in gangs.items()]
    return sorted(units, key=lambda unit: (-sum(_gpus(pod) for pod in unit[1]), _order(unit[1][0])))


def _order(pod: Json) -> tuple[int, int, int, str, str, str]:
    asked = requested(pod)
    created = str(pod["metadata"].get("creationTimestamp", ""))
    return (-_gpus(pod), -asked.get("cpu", 0), -asked.get("memory", 0), created, namespace_of(pod), name_of(pod))


def _gpus(pod: Json) -> int:
    return requested(pod).get(GPU_RESOURCE, 0)
