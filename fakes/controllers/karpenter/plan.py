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
    """A node that a NodePool could get of one of the cloud's pools (``pool``): as it would be, and how many more.

    ``remaining`` is what the NodePool's limits leave, by resource, for all its new nodes together.
    """

    pool: str
    node: Json
    left: int
    weight: int = 0
    price: float = 0.0
    nodepool: str = ""
    remaining: Mapping[str, int] = field(default_factory=dict)
    min_values: Mapping[str, int] = field(default_factory=dict)
    """By label, of how many values the NodePool wants a choice whenever it orders a node."""

    @property
    def owner(self) -> str:
        return self.nodepool or self.pool


def lacking_variety(templates: Sequence[Template]) -> tuple[str, ...]:
    """The labels of which there are fewer values left than their NodePool wants to choose from."""
    wanted = templates[0].min_values if templates else {}
    there = {key: {t.node["metadata"]["labels"].get(key) for t in templates} - {None} for key in wanted}
    return tuple(key for key, least in wanted.items() if len(there[key]) < least)


@dataclass(frozen=True, slots=True)
class NewNode:
    """``options``: every template that takes all its pods, the cheapest first, which is ``pool``."""

    pool: str
    pods: tuple[Json, ...]
    options: tuple[Template, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    new: tuple[NewNode, ...] = ()
    placed: tuple[tuple[Json, str], ...] = ()
    """Pods that fit on a node which exists or is under way, with its name."""
    unplaced: tuple[Json, ...] = ()
    """Pods for which no pool has a node; those of gangs with too few members are not among them."""


@dataclass(frozen=True, slots=True)
class _Option:
    template: Template
    room: NodeRoom


@dataclass(slots=True, eq=False)
class _Open:
    """A new node of this plan: what it could be becomes less with each pod on it."""

    options: list[_Option]
    pods: list[Json] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Placed:
    pod: Json
    room: NodeRoom | None
    opened: _Open | None = None
    dropped: tuple[_Option, ...] = ()


@dataclass(slots=True)
class _Trial:
    """Where pods were put so far; everything can be taken back."""

    rooms: Sequence[NodeRoom]
    templates: Sequence[Template]
    opened: list[_Open] = field(default_factory=list)
    placed: list[_Placed] = field(default_factory=list)

    def put(self, pod: Json) -> bool:
        for room in self.rooms:
            if refuse(pod, room) is None:
                room.hold(pod)
                self.placed.append(_Placed(pod, room))
                return True
        return any(self._join(pod, opened) for opened in self.opened) or self._open(pod)

    def take_back_to(self, placed: int, opened: int) -> None:
        for put in reversed(self.placed[placed:]):
            if put.room is not None:
                put.room.hold(put.pod, -1)
            if put.opened is not None:
                for option in put.opened.options:
                    option.room.hold(put.pod, -1)
                put.opened.options.extend(put.dropped)
                put.opened.pods.remove(put.pod)
        del self.placed[placed:]
        del self.opened[opened:]

    def _join(self, pod: Json, opened: _Open) -> bool:
        kept = [o for o in opened.options if refuse(pod, o.room) is None]
        if not kept or lacking_variety([o.template for o in kept]):
            return False
        dropped = tuple(o for o in opened.options if o not in kept)
        opened.options = kept
        for option in kept:
            option.room.hold(pod)
        opened.pods.append(pod)
        self.placed.append(_Placed(pod, None, opened, dropped))
        return True

    def _open(self, pod: Json) -> bool:
        """A node of the first NodePool that has one, of all its kinds that would do."""
        for owner in dict.fromkeys(t.owner for t in self.templates):
            mine = [t for t in self.templates if t.owner == owner and self._within_limits(t)]
            options = [_Option(t, NodeRoom.of(t.node)) for t in mine]
            fresh = _Open([o for o in options if refuse(pod, o.room) is None])
            if fresh.options and not lacking_variety([o.template for o in fresh.options]):
                self.opened.append(fresh)
                return self._join(pod, fresh)
        return False

    def _within_limits(self, template: Template) -> bool:
        mine = [o for o in self.opened if o.options[0].template.owner == template.owner]
        if sum(any(x.template.pool == template.pool for x in o.options) for o in mine) >= template.left:
            return False
        capacity = NodeRoom.of(template.node).total
        for resource, left in template.remaining.items():
            taken = sum(max(x.room.total.get(resource, 0) for x in o.options) for o in mine)
            if taken + capacity.get(resource, 0) > left:
                return False
        return True


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
    placed = tuple((put.pod, put.room.name) for put in trial.placed if put.room is not None)
    return Plan(tuple(_new_node(o) for o in trial.opened), placed, tuple(unplaced))


def _new_node(opened: _Open) -> NewNode:
    options = sorted((o.template for o in opened.options), key=lambda t: (t.price, t.pool))
    return NewNode(options[0].pool, tuple(opened.pods), tuple(options))


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
